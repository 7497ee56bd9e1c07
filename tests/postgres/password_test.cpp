// A server that repeats the password wherever its words may be shown. Expected: the error says all but that.
#include "backends/postgres/schema.hpp"
#include "postgres/postgres_test.hpp"
#include "servers/endless_server.hpp"

namespace interlock::postgres_tests {
namespace {

using servers::Repeated;

std::string number(std::uint32_t value, int bytes) {
  std::string text;
  while (bytes-- > 0) text += static_cast<char>(value >> (8U * static_cast<unsigned>(bytes)));
  return text;
}

std::string message(char type, const std::string& body) {
  return type + number(static_cast<std::uint32_t>(body.size()) + 4, 4) + body;
}

std::string text(const std::string& value) { return value + '\0'; }

// A query, a password, or a batch of messages up to its Sync. What a connection begins with has no letter.
std::size_t end_of(std::string_view bytes) {
  for (std::size_t at = 0;;) {
    const bool begins = at < bytes.size() && bytes[at] == 0;
    const auto length_at = at + (begins ? 0 : 1);
    if (length_at + 4 > bytes.size()) return 0;
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
      length = length << 8U | static_cast<unsigned char>(bytes[length_at + i]);
    const char letter = bytes[at];
    at = length_at + length;
    if (at > bytes.size()) return 0;
    if (begins || letter == 'Q' || letter == 'p' || letter == 'S') return at;
  }
}

std::string error(const std::string& state) {
  return message('E', "SERROR" + std::string(1, '\0') + "C" + text(state) + "M" +
                          text(Repeated::text()) + "D" + text(Repeated::text()) + '\0');
}

std::string rows(const std::vector<std::string>& values) {
  const auto count = number(static_cast<std::uint32_t>(values.size()), 2);
  std::string columns = count;
  std::string row = count;
  for (const auto& value : values) {
    columns += text("c") + number(0, 6) + number(25, 4) + number(0, 8);
    row += number(static_cast<std::uint32_t>(value.size()), 4) + value;
  }
  return message('T', columns) + message('D', row) + message('C', text("SELECT 1"));
}

const std::string kWantsPassword = message('R', number(3, 4));
const std::string kReady = message('Z', "I");
const std::string kWelcome = message('R', number(0, 4)) + kReady;
// libpq asks whether it is.
const std::string kWritable = rows({"off"}) + kReady;
const auto kVersion = std::to_string(postgres::kSchemaVersion);

struct Case {
  const char* name;
  std::vector<std::string> answers;
};

void PrintTo(const Case& what, std::ostream* out) { *out << what.name; }

class Repeats : public testing::TestWithParam<Case> {
 protected:
  static void expect_hidden(const std::string& before_host, const std::string& option,
                            std::vector<std::string> words = {}) {
    const servers::EndlessServer server(GetParam().answers, "", end_of);
    const auto url = "postgres://" + before_host + "@" + server.address() +
                     "/db?sslmode=disable&mode=lease" + option;
    words.insert(words.end(), {INTERLOCK_BIN, "--log-level", "debug", "--url", url, "run", "-n",
                               "job", "--", "true"});
    Repeated::expect_hidden(servers::measure(std::move(words)));
  }
};

TEST_P(Repeats, ThePasswordOfTheUrlIsNotShown) {
  expect_hidden(std::string("me:") + Repeated::kEncoded, "");
}

// libpq finds these by itself.
TEST_P(Repeats, ThePasswordOfTheEnvironmentIsNotShown) {
  expect_hidden("me", "", {"env", std::string("PGPASSWORD=") + Repeated::kPassword});
}

TEST_P(Repeats, ThePasswordOfAFileIsNotShown) {
  const TemporaryDirectory directory;
  const auto file = directory.path() / "pgpass";
  std::ofstream(file) << "*:*:*:me:" << Repeated::kPassword << "\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  expect_hidden("me", "&passfile=" + file.string());
}

INSTANTIATE_TEST_SUITE_P(
    Postgres, Repeats,
    testing::Values(
        Case{"AtLogin", {kWantsPassword, error("28P01")}},
        Case{"InSettingsAndNotices",
             {kWantsPassword,
              message('R', number(0, 4)) + message('S', text("a") + text(Repeated::text())) +
                  message('N', "M" + text(Repeated::text()) + '\0') + kReady,
              error("XX000") + kReady}},
        Case{"InNames",
             {kWantsPassword, kWelcome, kWritable,
              rows({"1", "0", "f", "150000", "f", Repeated::text(), "db"}) + kReady}},
        Case{"ToAStatement",
             {kWantsPassword, kWelcome, kWritable,
              rows({"1", kVersion, "f", "150000", "t", "me", "db"}) + kReady, rows({""}) + kReady,
              message('1', "") + message('2', "") + error("42501") + kReady}}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace interlock::postgres_tests
