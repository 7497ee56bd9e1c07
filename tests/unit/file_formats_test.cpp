// Files of this and of other formats.
#include "backends/file/process.hpp"
#include "file_store_support.hpp"
#include "formats.hpp"

namespace interlock::file_test {
namespace {

using testing_support::expect_format_refused;
using testing_support::format_file;
using testing_support::replace_all;

// As of this boot.
std::string written_now(std::string text) {
  const auto now = BootClock::now();
  text = replace_all(text, "@BOOT@", file::boot_id());
  text = replace_all(text, "@SINCE@", std::to_string((now - 1s).time_since_epoch().count()));
  return replace_all(text, "@EXPIRES@", std::to_string((now + 1h).time_since_epoch().count()));
}

TEST(FileFormats, ThePresentOneIsRead) {
  const TemporaryDirectory directory;
  write_file(directory / data_of("exclusive"), written_now(format_file("file-1.json")));
  const auto client = connect("file://" + directory.path().string());
  const auto found = client.inspect({.resources = {"exclusive"}}).resources;
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].holders.size(), 1U);
  EXPECT_EQ(found[0].holders[0].owner.to_string(), "b93d78c0a6bf6f7922cc2ed7cb01ca7a");
  EXPECT_EQ(found[0].holders[0].who.label, "nightly-backup");
  EXPECT_EQ(found[0].holders[0].fence.value, 1795104308045799U);
  ASSERT_EQ(found[0].waiters.size(), 1U);
  EXPECT_EQ(found[0].waiters[0].who.label, "waiter");
  EXPECT_FALSE(Mutex(client, "exclusive").try_acquire());
}

// Also by `interlock repair`, which sets damaged files aside.
TEST(FileFormats, OthersAreRefusedAndLeftAsTheyAre) {
  for (const std::string format : {"2", "0"}) {
    const TemporaryDirectory directory;
    const auto file = directory / data_of("exclusive");
    const auto url = "file://" + directory.path().string();
    { auto makes_the_files = Mutex(connect(url), "exclusive").acquire(); }
    const auto text = replace_all(written_now(format_file("file-1.json")), "\"interlock\":1",
                                  "\"interlock\":" + format);
    write_file(file, text);
    expect_format_refused(url, "exclusive",
                          {"format " + format, "format 1", "Nothing was changed", file.string()});
    const auto lines = repair_file_store(directory.path(), false);
    EXPECT_NE(lines.front().find("left as it is"), std::string::npos) << lines.front();
    EXPECT_EQ(read_file(file), text);
  }
}

}  // namespace
}  // namespace interlock::file_test
