// What listens at the address says more than anybody wants to know, without an end. Expected: an error in time, and
// hardly any memory.
#include "postgres/postgres_test.hpp"
#include "servers/endless_server.hpp"

namespace interlock::postgres_tests {
namespace {

// Most significant byte first.
std::string number(std::uint64_t value, int bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(value >> (8U * static_cast<unsigned>(bytes)));
  return text;
}

// The beginning of a message with so many bytes.
std::string announce(char type, std::uint32_t bytes) { return type + number(bytes + 4, 4); }

std::string message(char type, const std::string& body) {
  return announce(type, static_cast<std::uint32_t>(body.size())) + body;
}

std::string text(const std::string& value) { return value + '\0'; }

const std::string kWelcome = message('R', number(0, 4)) + message('Z', "I");
const std::string kOneColumn =
    message('T', number(1, 2) + text("c") + number(0, 6) + number(25, 4) + number(0, 8));
constexpr std::uint32_t kTooMuch = 2000000000;

struct Case {
  const char* name;
  std::vector<std::string> answers;
  std::string more;
};

void PrintTo(const Case& what, std::ostream* out) { *out << what.name; }

class Endless : public testing::TestWithParam<Case> {};

TEST_P(Endless, AnswerIsAnErrorInTimeAndLittleMemory) {
  const auto& what = GetParam();
  const servers::EndlessServer server(what.answers, what.more);
  const auto usage =
      servers::measure({INTERLOCK_BIN, "--url",
                        "postgres://postgres@" + server.address() + "/postgres?sslmode=disable",
                        "run", "-w", "1s", "job", "--", "true"});
  servers::expect_refused(usage, server.address());
}

INSTANTIATE_TEST_SUITE_P(
    Postgres, Endless,
    testing::Values(
        Case{"NoProtocol", {""}, "a"},
        Case{"Parameters",
             {message('R', number(0, 4))},
             message('S', text("parameter") + text("value"))},
        Case{"ManyParameters", {message('R', number(0, 4))}, message('S', text("a") + text(""))},
        Case{"Row", {kWelcome, kOneColumn + announce('D', kTooMuch)}, "a"},
        Case{"Rows", {kWelcome, kOneColumn}, message('D', number(1, 2) + number(1, 4) + "a")},
        Case{"EmptyRows", {kWelcome, kOneColumn}, message('D', number(1, 2) + "\xff\xff\xff\xff")},
        Case{"Columns", {kWelcome, announce('T', kTooMuch) + number(1, 2)}, "a"},
        Case{"Results", {kWelcome, ""}, kOneColumn + message('C', text("SELECT 0"))},
        Case{"Notices", {kWelcome, ""}, message('N', "M" + text("listen") + '\0')},
        Case{"Notice", {kWelcome, announce('N', kTooMuch)}, "a"},
        Case{"Notifications",
             {kWelcome, ""},
             message('A', number(1, 4) + text("channel") + text("payload"))},
        Case{"Notification", {kWelcome, announce('A', kTooMuch)}, "a"}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace interlock::postgres_tests
