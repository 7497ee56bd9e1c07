#include "core/sha256.hpp"

#include <gtest/gtest.h>

namespace interlock::core {
namespace {

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, AnyLengthAroundABlock) {
  // The digest of the digests of 0 to 130 bytes, as `sha256sum` has it.
  std::string all;
  for (std::size_t length = 0; length <= 130; ++length)
    all += sha256_hex(std::string(length, 'x')) + "\n";
  EXPECT_EQ(sha256_hex(all), "7880f77b654302a7082dd571fd4d0f44d583e661fa622b42404576e380865e8e");
}

}  // namespace
}  // namespace interlock::core
