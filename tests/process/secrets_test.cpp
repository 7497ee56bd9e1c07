// Which variables of the environment have the secrets of a store.
#include "secrets.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace cli {
namespace {

using Names = std::vector<std::string>;

TEST(SecretVariables, AreThoseOfTheStoreThatIsUsed) {
  ::setenv("INTERLOCK_URL", "redis://h", 1);
  ::setenv("PGPASSWORD", "geheim", 1);
  ::setenv("PGPASSFILE", "/etc/pgpass", 1);
  ::unsetenv("PGSERVICEFILE");
  EXPECT_EQ(secret_variables("file:///locks"), Names{});
  EXPECT_EQ(secret_variables("postgres://h/db"), (Names{"PGPASSWORD", "PGPASSFILE"}));
  EXPECT_EQ(secret_variables("redis://h?password-env=X"), Names{"X"});
  EXPECT_EQ(secret_variables("redis+sentinel://h/m?sentinel-password-env=S&password-env=X"),
            (Names{"X", "S"}));
  EXPECT_EQ(
      secret_variables("redlock:?nodes=redis://a%3Fpassword-env%3DX,redis://b%3Fpassword-env%3DY"),
      (Names{"X", "Y"}));
  ::setenv("INTERLOCK_URL", "redis://:geheim@h", 1);
  EXPECT_EQ(secret_variables("file:///locks"), Names{"INTERLOCK_URL"});
  ::unsetenv("INTERLOCK_URL");
  ::unsetenv("PGPASSWORD");
  ::unsetenv("PGPASSFILE");
}

TEST(Secrets, AreOverwrittenInPlaceAlsoBehindTheSeparator) {
  std::vector<std::string> words{
      "interlock",  "run",      "--url", "redis://me:geheim@h:1", "a:b@c",
      "--url=red:", "il1.0123", "--",    "redis://:geheim@h"};
  std::vector<char*> argv;
  argv.reserve(words.size());
  for (auto& word : words) argv.push_back(word.data());
  hide_secrets(static_cast<int>(argv.size()), argv.data());
  EXPECT_STREQ(argv[3], "redis://me:***@h:1");
  EXPECT_STREQ(argv[4], "a:b@c");  // the name of a lock
  EXPECT_STREQ(argv[5], "--url=red:");
  EXPECT_STREQ(argv[6], "il1.***");
  EXPECT_STREQ(argv[8], "redis://:***@h");
  // Shorter than what would be shown.
  std::string brief = "redis://:x@h";
  std::vector<char*> two{words[0].data(), brief.data()};
  hide_secrets(2, two.data());
  EXPECT_STREQ(two[1], "************");
}

}  // namespace
}  // namespace cli
