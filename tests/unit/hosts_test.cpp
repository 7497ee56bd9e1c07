// Which hosts are this machine, and what is said of a password that leaves it unencrypted.
#include "core/hosts.hpp"

#include <gtest/gtest.h>

namespace interlock {
namespace {

TEST(Hosts, AreThisMachineByTheirAddressAndNotByTheirName) {
  for (const char* host :
       {"/run/postgresql", "localhost", "127.0.0.1", "127.255.1.2", "::1", "0:0:0:0:0:0:0:1"})
    EXPECT_TRUE(core::is_this_machine(host)) << host;
  for (const char* host : {"", "127.evil.example", "127.0.0.1.evil.example", "127.1", "127.0.0.1 ",
                           "0.0.0.0", "10.0.0.1", "128.0.0.1", "::ffff:127.0.0.1", "::", "fe80::1",
                           "localhost.evil.example", "localhost4", "@name"})
    EXPECT_FALSE(core::is_this_machine(host)) << host;
}

TEST(Hosts, APasswordThatOthersCouldReadIsWarnedOf) {
  EXPECT_EQ(core::readable_password({"127.0.0.1", "::1", "/run/redis.sock"}, "rediss"),
            std::nullopt);
  const auto warning = core::readable_password({"localhost", "127.evil.example"}, "rediss");
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("127.evil.example"), std::string::npos) << *warning;
  EXPECT_NE(warning->find("rediss://"), std::string::npos) << *warning;
}

}  // namespace
}  // namespace interlock
