// Records of this and of other formats.
#include "formats.hpp"
#include "etcd/etcd_test.hpp"

namespace interlock::etcd_tests {
namespace {

using testing_support::expect_format_refused;
using testing_support::format_file;
using testing_support::lines_of;
using testing_support::replace_all;

class Formats : public EtcdTest<servers::EtcdServer> {
 protected:
  void write(const std::string& text) {
    for (const auto& line : lines_of(text)) {
      const auto space = line.find(' ');
      servers().ctl(
          {"put", replace_all(line.substr(0, space), "\\t", "\t"), line.substr(space + 1)});
    }
  }
  std::string everything() { return servers().ctl({"get", "--prefix", "interlock/"}); }
};

TEST_F(Formats, ThePresentOneIsRead) {
  write(format_file("etcd-1.txt"));
  const auto state = look("exclusive");
  ASSERT_EQ(state.holders.size(), 1U);
  EXPECT_EQ(state.holders[0].owner.to_string(), "70b3e1749c0eefe1f99d9320b2973674");
  EXPECT_EQ(state.holders[0].who.label, "nightly-backup");
  EXPECT_EQ(state.holders[0].who.host, "vm");
  ASSERT_EQ(look("shared").holders.size(), 1U);
  EXPECT_EQ(look("shared").holders[0].who.label, "reader");
  EXPECT_FALSE(Mutex(connect(url()), "exclusive").try_acquire());
  EXPECT_FALSE(Mutex(connect(url()), "shared").try_acquire());
}

TEST_F(Formats, OthersAreRefusedAndLeftAsTheyAre) {
  const auto now = format_file("etcd-1.txt");
  for (const auto& [field, words] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {R"("interlock":2,)",
            {"format 2", "format 1", "Nothing was changed", "Update Interlock"}},
           {"",
            {"before 0.2", "format 0", "format 1", "Nothing was changed", "Stop the programs"}}}) {
    write(replace_all(now, R"("interlock":1,)", field));
    const auto before = everything();
    for (const std::string name : {"exclusive", "shared"}) {
      SCOPED_TRACE(field + " " + name);
      expect_format_refused(url(), name, words);
    }
    EXPECT_TRUE(eventually([&] { return everything() == before; })) << everything();
  }
}

// When its turn comes, it looks at names alone.
TEST_F(Formats, AReaderThatWaitedIsRefusedBesideAReaderOfAnother) {
  write(format_file("etcd-1.txt"));
  std::string other;
  for (const auto& line : lines_of(format_file("etcd-1.txt"))) {
    if (line.starts_with("interlock/shared"))
      other = replace_all(replace_all(line, R"("interlock":1,)", R"("interlock":2,)"),
                          "interlock/shared", "interlock/exclusive");
  }
  auto waits = std::async(std::launch::async, [&] {
    return RwLock(connect(url()), "exclusive").try_read_for(kPatience);
  });
  ASSERT_TRUE(eventually([&] { return look("exclusive").waiters.size() == 1; }));
  write(other);
  servers().ctl({"del", "interlock/exclusive\thx"});
  try {
    (void)waits.get();
    ADD_FAILURE() << "it was granted, or told that it was not";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
    EXPECT_NE(std::string(error.what()).find("format 2"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(eventually([&] {
    return lines_of(servers().ctl({"get", "--prefix", "--keys-only", "interlock/exclusive"}))
               .size() <= 2;
  }));
}

}  // namespace
}  // namespace interlock::etcd_tests
