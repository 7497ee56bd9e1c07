// A server that repeats the password wherever its words may be shown. Expected: the error says all but that.
#include "redis/redis_test.hpp"
#include "servers/endless_server.hpp"

namespace interlock::redis_tests {
namespace {

using servers::EndlessServer;
using servers::Repeated;

struct Case {
  const char* name;
  /// What comes before the words.
  std::string code;
  std::string scheme = "redis://";
  std::string rest{};
};

void PrintTo(const Case& what, std::ostream* out) { *out << what.name; }

class Repeats : public testing::TestWithParam<Case> {};

TEST_P(Repeats, ThePasswordIsNotShown) {
  const auto& what = GetParam();
  const auto error = "-" + what.code + Repeated::text() + "\r\n";
  const EndlessServer server({error}, error);
  const auto password = std::string(":") + Repeated::kEncoded + "@";
  Repeated::expect_hidden(servers::measure({"env", std::string("PASSWORD=") + Repeated::kPassword,
                                            INTERLOCK_BIN, "--log-level", "debug", "--url",
                                            what.scheme + password + server.address() + what.rest,
                                            "run", "-w", "1s", "job", "--", "true"}));
}

INSTANTIATE_TEST_SUITE_P(
    Redis, Repeats,
    testing::Values(Case{"AtLogin", "WRONGPASS "}, Case{"WithoutACode", ""},
                    Case{"InACluster", "ERR ", "redis+cluster://", ""},
                    Case{"OfASentinel", "WRONGPASS ", "redis+sentinel://",
                         "/main?sentinel-user=me&sentinel-password-env=PASSWORD"}),
    [](const auto& param) { return std::string(param.param.name); });

// One command: *WORDS, and each word as $LENGTH and its bytes.
std::size_t end_of(std::string_view bytes) {
  std::size_t at = 0;
  const auto number = [&] {
    const auto end = bytes.find("\r\n", at);
    if (end == std::string_view::npos) return -1;
    const auto value = std::stoi(std::string(bytes.substr(at + 1, end - at - 1)));
    at = end + 2;
    return value;
  };
  for (auto words = number(); words != 0; --words) {
    const auto length = words < 0 ? -1 : number();
    if (length < 0) return 0;
    at += static_cast<std::size_t>(length) + 2;
    if (at > bytes.size()) return 0;
  }
  return at;
}

TEST(RepeatsToACommand, ThePasswordIsNotShown) {
  std::vector<std::string> answers(100, "-ERR " + Repeated::text() + "\r\n");
  answers.front() = "+OK\r\n";
  const EndlessServer server(answers, "", end_of);
  const auto url = std::string("redis://:") + Repeated::kEncoded + "@" + server.address();
  Repeated::expect_hidden(servers::measure(
      {INTERLOCK_BIN, "--log-level", "debug", "--url", url, "run", "-n", "job", "--", "true"}));
}

// Expected: a warning, before anything is sent.
TEST(ReadablePassword, IsWarnedOf) {
  const auto warned = [](const std::string& url) {
    const auto store = stores::open(url);
    for (const auto& warning : store->traits().warnings) {
      if (warning.find("unencrypted") != std::string::npos) return true;
    }
    return false;
  };
  for (const std::string there :
       {"redis://:pw@db.example", "redis://:pw@127.evil.example",
        "redis+cluster://:pw@[::1],db.example", "redis+sentinel://:pw@db.example/main",
        "redlock://:pw@localhost,127.0.0.2,db.example",
        "redlock:?nodes=redis://localhost,redis://:pw@10.0.0.1,redis://127.0.0.1"})
    EXPECT_TRUE(warned(there)) << there;
  for (const std::string here :
       {"redis://:pw@localhost", "redis://db.example", "rediss://:pw@db.example",
        "redis+unix:///run/redis.sock", "redis+cluster://:pw@127.0.0.1,[::1]",
        "rediss+cluster://:pw@db.example", "redlock://db1,db2,db3",
        "redlock:?nodes=redis://localhost,rediss://:pw@10.0.0.1,redis://10.0.0.2"})
    EXPECT_FALSE(warned(here)) << here;
}

}  // namespace
}  // namespace interlock::redis_tests
