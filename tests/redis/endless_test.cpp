// What listens at the address says more than anybody wants to know, without an end. Expected: an error in time, and
// hardly any memory.
#include "redis/redis_test.hpp"
#include "servers/endless_server.hpp"

namespace interlock::redis_tests {
namespace {

using servers::EndlessServer;

struct Case {
  const char* name;
  std::string answer;
  std::string more;
  std::string scheme = "redis://";
  std::string rest{};
};

void PrintTo(const Case& what, std::ostream* out) { *out << what.name; }

class Endless : public testing::TestWithParam<Case> {};

TEST_P(Endless, AnswerIsAnErrorInTimeAndLittleMemory) {
  const auto& what = GetParam();
  const EndlessServer server({what.answer}, what.more);
  const auto usage =
      servers::measure({INTERLOCK_BIN, "--url", what.scheme + server.address() + what.rest, "run",
                        "-w", "1s", "job", "--", "true"});
  servers::expect_refused(usage, server.address());
}

INSTANTIATE_TEST_SUITE_P(
    Redis, Endless,
    testing::Values(Case{"Bulk", "$9000000000000000000\r\n", "a"},
                    Case{"BulkOfALength", "$1000000000\r\n", "a"}, Case{"Line", "+", "a"},
                    Case{"Error", "-ERR ", "a"}, Case{"NoLine", "", "a"},
                    Case{"Array", "*2000000000\r\n", ":1\r\n"},
                    Case{"ArrayOfTexts", "*2000000000\r\n", "$3\r\nabc\r\n"},
                    Case{"ArrayOfArrays", "*2000000000\r\n", "*2\r\n:1\r\n:2\r\n"},
                    Case{"ArrayOfLongArrays", "*1000000\r\n*1000000\r\n*1000000\r\n", ":1\r\n"},
                    Case{"Replies", "+OK\r\n", "+OK\r\n"},
                    Case{"Messages",
                         "*0\r\n*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n",
                         "*1\r\n$1\r\na\r\n", "redis+sentinel://", "/mymaster"}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace interlock::redis_tests
