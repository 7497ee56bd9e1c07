// Records of this and of other formats, and keys of other libraries.
#include "formats.hpp"
#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

using testing_support::expect_format_refused;
using testing_support::format_file;
using testing_support::lines_of;
using testing_support::replace_all;

void write_to(Console& console, const std::string& text) {
  for (const auto& line : lines_of(text)) {
    std::vector<std::string> words;
    std::istringstream in(line);
    for (std::string word; in >> word;)
      words.push_back(word.find("\\n") == std::string::npos ? word
                                                            : replace_all(word, "\\n", "\n"));
    const auto said = console(words);
    EXPECT_TRUE(said == "OK" || said == "1" || said == "0") << line << ": " << said;
  }
}

std::string everything_in(Console& console) {
  return console("GET interlock:exclusive") + console("GET {interlock:exclusive}:who") +
         console("GET interlock:shared") + console("HGETALL {interlock:shared}:holders") +
         console("ZRANGE {interlock:shared}:ends 0 -1");
}

const std::vector<std::pair<std::string, std::vector<std::string>>> kOtherFormats{
    {"0P2:", {"format 2", "format 1", "Nothing was changed", "Update Interlock"}},
    {"0P", {"before 0.2", "format 0", "format 1", "Nothing was changed", "Stop the programs"}}};

class Formats : public RedisTest {
 protected:
  void write(const std::string& text) {
    console()("FLUSHALL");
    write_to(console(), text);
  }
  std::string everything() { return everything_in(console()); }
};

TEST_F(Formats, ThePresentOneIsRead) {
  write(format_file("redis-1.txt"));
  const auto state = look("exclusive");
  ASSERT_EQ(state.holders.size(), 1U);
  EXPECT_EQ(state.holders[0].owner.to_string(), "837220a737511dd5e8698ffb04313409");
  EXPECT_EQ(state.holders[0].who.label, "nightly-backup");
  EXPECT_EQ(state.holders[0].who.host, "vm");
  EXPECT_EQ(state.holders[0].fence.value, 1795104308115413U);
  ASSERT_EQ(look("shared").holders.size(), 1U);
  EXPECT_EQ(look("shared").holders[0].who.label, "reader");
  EXPECT_FALSE(Mutex(connect(url()), "exclusive").try_acquire());
  EXPECT_FALSE(Mutex(connect(url()), "shared").try_acquire());
  EXPECT_TRUE(RwLock(connect(url()), "shared").try_read());
}

TEST_F(Formats, OthersAreRefusedAndLeftAsTheyAre) {
  const auto now = format_file("redis-1.txt");
  for (const auto& [flags, words] : kOtherFormats) {
    write(replace_all(now, "\\n0P1:\\n", "\\n" + flags + "\\n"));
    const auto before = everything();
    for (const std::string name : {"exclusive", "shared"}) {
      SCOPED_TRACE(flags + " " + name);
      expect_format_refused(url(), name, words);
    }
    EXPECT_EQ(everything(), before);
  }
}

class RedlockFormats : public testing::Test {
 protected:
  RedlockFormats() {
    // The nodes know their servers, and count in a majority.
    Mutex(connect(url()), "first").acquire().release();
  }
  [[nodiscard]] std::string url() const {
    return "redlock://" + nodes_[0].address() + "," + nodes_[1].address() + "," +
           nodes_[2].address();
  }
  void write(const std::string& text) {
    for (auto& console : consoles_) write_to(console, text);
  }
  std::vector<std::string> everything() {
    std::vector<std::string> all;
    for (auto& console : consoles_) all.push_back(everything_in(console));
    return all;
  }

 private:
  std::vector<servers::RedisServer> nodes_{3};
  std::array<Console, 3> consoles_{Console(nodes_[0].port()), Console(nodes_[1].port()),
                                   Console(nodes_[2].port())};
};

TEST_F(RedlockFormats, ThePresentOneIsRead) {
  write(format_file("redlock-1.txt"));
  const auto client = connect(url());
  const auto exclusive = testing_support::seen_by(client, "exclusive");
  ASSERT_EQ(exclusive.holders.size(), 1U);
  EXPECT_EQ(exclusive.holders[0].owner.to_string(), "14ca988f8180b221a65f946c13400e83");
  EXPECT_EQ(exclusive.holders[0].who.label, "nightly-backup");
  EXPECT_EQ(exclusive.holders[0].fence.value, 1795109917181394U);
  const auto shared = testing_support::seen_by(client, "shared");
  ASSERT_EQ(shared.holders.size(), 1U);
  EXPECT_EQ(shared.holders[0].who.label, "reader");
  EXPECT_FALSE(Mutex(client, "exclusive").try_acquire());
  EXPECT_FALSE(Mutex(client, "shared").try_acquire());
  EXPECT_TRUE(RwLock(client, "shared").try_read());
}

// Said as for one server, and not that there is no majority.
TEST_F(RedlockFormats, OthersAreRefusedAndLeftAsTheyAre) {
  const auto now = format_file("redlock-1.txt");
  for (const auto& [flags, words] : kOtherFormats) {
    write(replace_all(now, "\\n0P1:\\n", "\\n" + flags + "\\n"));
    const auto before = everything();
    auto said = words;
    said.emplace_back("on the nodes of this Redlock, its record");
    for (const std::string name : {"exclusive", "shared"}) {
      SCOPED_TRACE(flags + " " + name);
      expect_format_refused(url(), name, said, false);
    }
    EXPECT_EQ(everything(), before);
  }
}

TEST_F(Formats, AKeyOfAnotherLibraryIsAForeignHolder) {
  console()("SET interlock:r 6f1c PX 600000");
  ASSERT_EQ(holders("r"), 1U);
  EXPECT_FALSE(Mutex(connect(url()), "r").try_acquire());
  EXPECT_FALSE(Mutex(connect(url()), "r").try_acquire_for(300ms));
}

}  // namespace
}  // namespace interlock::redis_tests
