// The tests run in the locale of their environment, as many programs that link Interlock do.
#include <gtest/gtest.h>

#include <clocale>
#include <locale>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (std::setlocale(LC_ALL, "") != nullptr) std::locale::global(std::locale(""));
  return RUN_ALL_TESTS();
}
