// The file store's files: what survives, what is refused, what is void.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <random>
#include <thread>

#include "unit/file_store_support.hpp"

namespace interlock::stores {
StoreEntry file();
}

namespace interlock::file_test {
namespace {

Errc refused_with(const fs::path& path) {
  try {
    file_store(path);
  } catch (const Error& error) {
    return error.errc();
  }
  return Errc{};
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in " << text;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

/// With this number in place of the first one of that name.
std::string with_number(std::string text, const std::string& name, const std::string& number) {
  const auto key = '"' + name + "\":";
  const auto at = text.find(key);
  EXPECT_NE(at, std::string::npos) << key << " in " << text;
  if (at == std::string::npos) return text;
  const auto begin = at + key.size();
  return text.replace(begin, text.find_first_not_of("0123456789", begin) - begin, number);
}

TEST(FileStore, RecordsSurviveReopening) {
  const TemporaryDirectory directory;
  const auto claim = claim_on({"a", "b"});
  Answer granted;
  {
    Store store(directory.path());
    granted = store.acquire(claim);
    ASSERT_EQ(granted.verdict, Verdict::granted);
  }
  Store store(directory.path());
  EXPECT_EQ(store.acquire(claim_on({"a"})).verdict, Verdict::busy);
  const auto again = store.acquire(claim);
  EXPECT_EQ(again.verdict, Verdict::granted);
  EXPECT_EQ(again.fences, granted.fences);
  EXPECT_EQ(store.renew(claim).verdict, Verdict::granted);
  EXPECT_EQ(store.release(claim).verdict, Verdict::granted);
  EXPECT_EQ(store.release(claim).verdict, Verdict::lost);
  EXPECT_EQ(store.renew(claim).verdict, Verdict::lost);
  EXPECT_TRUE(store.inspect().resources.empty());
}

// Row 4.5.
TEST(FileStore, EveryFieldOfARecordSurvives) {
  const TemporaryDirectory directory;
  Claim held{.owner = Owner::random(),
             .parts = {{.resource = "pool", .mode = Mode::slots, .slots = 3, .capacity = 4}},
             .ttl = 60s,
             .priority = -7,
             .who = std::make_shared<const Who>(Who{.label = "what \"for\" \\ …",
                                                    .identity = "me 🔒",
                                                    .host = "höst",
                                                    .pid = ::getpid(),
                                                    .actor = "ann",
                                                    .owner_id = "worker \"7\""})};
  auto waiting = held;
  waiting.owner = Owner::random();
  waiting.priority = 9;
  {
    Store store(directory.path());
    ASSERT_EQ(store.acquire(held).verdict, Verdict::granted);
    ASSERT_EQ(store.acquire(waiting, true).verdict, Verdict::queued);
  }
  Store store(directory.path());
  const auto snapshot = store.inspect();
  ASSERT_EQ(snapshot.resources.size(), 1U);
  const auto& state = snapshot.resources.front();
  EXPECT_EQ(state.resource, "pool");
  EXPECT_EQ(state.capacity, 4U);
  ASSERT_EQ(state.holders.size(), 1U);
  const auto& holder = state.holders.front();
  EXPECT_EQ(holder.owner, held.owner);
  EXPECT_EQ(holder.who, *held.who);
  EXPECT_EQ(holder.mode, Mode::slots);
  EXPECT_EQ(holder.slots, 3U);
  EXPECT_EQ(holder.priority, -7);
  EXPECT_GT(holder.fence.value, 0U);
  EXPECT_GT(holder.remaining, 50s);
  ASSERT_EQ(state.waiters.size(), 1U);
  EXPECT_EQ(state.waiters.front().owner, waiting.owner);
  EXPECT_EQ(state.waiters.front().priority, 9);
}

TEST(FileStore, OddNamesAreNothingButText) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  const std::vector<std::string> names{
      "../../etc/passwd", "a\"b\\c'd", "%00%2f", "🔒🔑",
      "{\"res\":1}",      ".",         "/",      std::string(512, 'x')};
  const auto claim = claim_on(names);
  ASSERT_EQ(store.acquire(claim).verdict, Verdict::granted);
  for (const auto& name : names) {
    EXPECT_EQ(store.acquire(claim_on({name})).verdict, Verdict::busy) << name;
  }
  for (const auto& entry : fs::directory_iterator(directory.path())) {
    const auto name = entry.path().filename().string();
    EXPECT_TRUE(name == "wake" || name == "boot" || name.size() == 8) << name;
  }
  EXPECT_EQ(store.inspect().resources.size(), names.size());
  EXPECT_EQ(store.release(claim).verdict, Verdict::granted);
}

TEST(FileStore, ANameThatNoFileMayHoldIsRefused) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  const auto answer = store.acquire(claim_on({"broken \xff utf-8"}));
  ASSERT_TRUE(answer.why);
  EXPECT_EQ(answer.why->errc(), Errc::invalid);
  EXPECT_EQ(store.acquire(claim_on({"fine"})).verdict, Verdict::granted);
}

class CorruptFile : public testing::TestWithParam<const char*> {};

// Row 4.5.
TEST_P(CorruptFile, IsRefusedAndNamedAndNeverReadAsFree) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  const auto held = claim_on({"name"});
  ASSERT_EQ(store.acquire(held).verdict, Verdict::granted);
  const auto file = directory / data_of("name");
  const auto good = read_file(file);

  const std::string how = GetParam();
  std::string bad = how;
  if (how == "half") bad = good.substr(0, good.size() / 2);
  if (how == "tail") bad = good + "x";
  if (how == "zeros") bad = std::string(good.size(), '\0');
  if (how == "type") bad = replaced(good, "\"records\":[", "\"records\":{},\"x\":[");
  if (how == "owner") bad = replaced(good, held.owner.to_string(), "nobody");
  if (how == "absurd") bad = with_number(good, "exp", "9000000000000000000");
  if (how == "negative") bad = replaced(good, "\"since\":", "\"since\":-");
  if (how == "fence") bad = with_number(good, "fence", "9007199254740993");
  if (how == "mode") bad = replaced(good, "\"exclusive\"", "\"whatever\"");
  if (how == "elsewhere") bad = replaced(good, "\"res\":\"name\"", "\"res\":\"names\"");
  if (how == "twice") {
    const auto begin = good.find("{\"res\"");
    const auto record = good.substr(begin, good.find('}', begin) + 1 - begin);
    bad = replaced(good, record, record + "," + record);
  }
  write_file(file, bad);

  for (const auto& answer : {store.acquire(claim_on({"name"})), store.acquire(held),
                             store.renew(held), store.release(held)}) {
    ASSERT_EQ(answer.verdict, Verdict::unknown);
    ASSERT_TRUE(answer.why);
    EXPECT_EQ(answer.why->errc(), Errc::corrupt);
    const std::string text = answer.why->what();
    EXPECT_NE(text.find(file.string()), std::string::npos) << text;
    EXPECT_NE(text.find("interlock repair --url file://"), std::string::npos) << text;
  }
  EXPECT_TRUE(store.inspect().why);
  EXPECT_EQ(read_file(file), bad) << "it is evidence, and stays as it is";
  write_file(file, good);
  EXPECT_EQ(store.release(held).verdict, Verdict::granted);
}

INSTANTIATE_TEST_SUITE_P(Ways, CorruptFile,
                         testing::Values("half", "tail", "zeros", "type", "owner", "absurd",
                                         "negative", "fence", "mode", "elsewhere", "twice", "[]",
                                         "null", "{}", "not json"),
                         [](const auto& way) {
                           std::string name = way.param;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name.empty() ? "case" + std::to_string(way.index) : name;
                         });

TEST(FileStore, RepairSetsCorruptFilesAsideAndFencesStillRise) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  const auto bad = claim_on({"bad"});
  const auto good = claim_on({"good"});
  const auto before = store.acquire(bad);
  ASSERT_EQ(before.verdict, Verdict::granted);
  ASSERT_EQ(store.acquire(good).verdict, Verdict::granted);
  write_file(directory / data_of("bad"), "{\"interlock\":1,");

  const auto dry = repair_file_store(directory.path(), true);
  ASSERT_EQ(dry.size(), 2U);
  EXPECT_NE(dry[0].find(data_of("bad")), std::string::npos) << dry[0];
  ASSERT_TRUE(store.acquire(bad).why) << "a dry run changes nothing";

  const auto lines = repair_file_store(directory.path(), false);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find("corrupt-1"), std::string::npos) << lines[0];
  EXPECT_EQ(read_file(directory / (file::shard_name(file::shard_of("bad")) + ".corrupt-1")),
            "{\"interlock\":1,");
  const auto after = store.acquire(claim_on({"bad"}));
  ASSERT_EQ(after.verdict, Verdict::granted);
  EXPECT_GT(after.fences.front(), before.fences.front());
  EXPECT_EQ(store.renew(good).verdict, Verdict::granted);
  EXPECT_EQ(repair_file_store(directory.path(), false).size(), 1U);
}

TEST(FileStore, AFileThatIsFullTakesNoMoreAndReleasesStillWork) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  const auto shared_claim = [] {
    auto claim = claim_on({"name"});
    claim.parts.front().mode = Mode::shared;
    claim.who = who(::getpid(), std::string(1024, 'x'));
    return claim;
  };
  const auto held = shared_claim();
  ASSERT_EQ(store.acquire(held).verdict, Verdict::granted);
  const auto file = directory / data_of("name");
  auto text = read_file(file);
  const auto begin = text.find("\n{\"res\"");
  const auto record = text.substr(begin, text.find('}', begin) + 1 - begin) + ",";
  std::string more;
  while (text.size() + more.size() + record.size() < file::kMostBytes)
    more += replaced(record, held.owner.to_string(), Owner::random().to_string());
  text.insert(begin, more);
  write_file(file, text);

  const auto answer = store.acquire(shared_claim());
  ASSERT_TRUE(answer.why);
  EXPECT_EQ(answer.why->errc(), Errc::refused);
  EXPECT_NE(answer.why->message().find("8 MiB"), std::string::npos) << answer.why->what();
  EXPECT_EQ(read_file(file), text);
  EXPECT_EQ(store.renew(held).verdict, Verdict::granted);
  EXPECT_EQ(store.release(held).verdict, Verdict::granted);
  EXPECT_EQ(store.acquire(shared_claim()).verdict, Verdict::granted);
}

TEST(FileStore, AnEmptyFileIsAnEmptyShard) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  write_file(directory / data_of("name"), "");
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::granted);
}

TEST(FileStore, ADirectoryThatIsNotOursAloneIsRefused) {
  const TemporaryDirectory base;
  const auto open = base / "open";
  fs::create_directory(open);
  ::chmod(open.c_str(), 0750);
  EXPECT_EQ(refused_with(open), Errc::refused);
  ::chmod(open.c_str(), 0700);
  EXPECT_EQ(refused_with(open), Errc{});

  fs::create_directory_symlink(open, base / "link");
  EXPECT_EQ(refused_with(base / "link"), Errc::refused);
  EXPECT_EQ(refused_with(base / "link/"), Errc::refused);

  write_file(base / "file", "x");
  EXPECT_EQ(refused_with(base / "file"), Errc::refused);
  EXPECT_EQ(refused_with(base / "made"), Errc{});
  struct stat info {};
  ASSERT_EQ(::stat((base / "made").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  // A mistyped path is told, and nothing made of it.
  EXPECT_EQ(refused_with(base / "mistyped/locks"), Errc::refused);
  EXPECT_FALSE(fs::exists(base / "mistyped"));

  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(open.c_str(), 12345, 12345), 0);
    EXPECT_EQ(refused_with(open), Errc::refused);
  }
}

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0U;
}

TEST(FileStore, AUmaskDoesNotTakeTheDirectoryFromItsOwner) {
  const TemporaryDirectory base;
  const auto locks = base / "locks";
  for (const mode_t mask : {0177U, 0777U}) {
    fs::remove_all(locks);
    const auto before = ::umask(mask);
    const auto refused = refused_with(locks);
    ::umask(before);
    EXPECT_EQ(refused, Errc{});
    EXPECT_EQ(mode_of(locks), 0700U) << std::oct << mask;
    EXPECT_EQ(mode_of(locks / "wake"), 0700U) << std::oct << mask;
  }
  // As it was left by a version that did not see to it.
  for (const mode_t mode : {0600U, 0500U, 0000U}) {
    ASSERT_EQ(::chmod((locks / "wake").c_str(), mode), 0);
    ASSERT_EQ(::chmod(locks.c_str(), mode), 0);
    EXPECT_EQ(refused_with(locks), Errc{}) << std::oct << mode;
    EXPECT_EQ(mode_of(locks), 0700U) << std::oct << mode;
    EXPECT_EQ(mode_of(locks / "wake"), 0700U) << std::oct << mode;
  }
}

std::string refusal_of(const fs::path& path) {
  try {
    file_store(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
    return error.message();
  }
  return "accepted";
}

TEST(FileStore, ADirectoryBelowOneThatOthersCanWriteToIsRefused) {
  const TemporaryDirectory base;
  const auto above = base / "above";
  fs::create_directories(above / "between");
  const auto locks = above / "between/locks";
  for (const mode_t mode : {0755U, 0700U, 0711U, 01777U, 01775U}) {
    ASSERT_EQ(::chmod(above.c_str(), mode), 0);
    EXPECT_EQ(refusal_of(locks), "accepted") << std::oct << mode;
  }
  for (const mode_t mode : {0777U, 0757U, 0703U}) {
    ASSERT_EQ(::chmod(above.c_str(), mode), 0);
    const auto text = refusal_of(locks);
    EXPECT_NE(text.find("write to " + above.string() + " "), std::string::npos) << text;
    EXPECT_NE(text.find("chmod go-w " + above.string()), std::string::npos) << text;
  }
}

TEST(FileStore, ADirectoryBelowOneOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give directories away";
  const TemporaryDirectory base;
  const auto above = base / "above";
  fs::create_directories(above / "between");
  const auto locks = above / "between/locks";
  for (const mode_t mode : {0755U, 0700U, 01777U}) {
    ASSERT_EQ(::chmod(above.c_str(), mode), 0);
    ASSERT_EQ(::chown(above.c_str(), 12345, 0), 0);
    const auto text = refusal_of(locks);
    EXPECT_NE(text.find(above.string() + " above it belongs to user 12345"), std::string::npos)
        << text;
    EXPECT_NE(text.find("chown -h root " + above.string()), std::string::npos) << text;
  }
  ASSERT_EQ(::chown(above.c_str(), 65534, 0), 0);
  EXPECT_NE(refusal_of(locks), "accepted") << "all users are mapped here, so that is nobody";
  ASSERT_EQ(::chown(above.c_str(), 0, 12345), 0);
  ASSERT_EQ(::chmod(above.c_str(), 0775), 0);
  EXPECT_NE(refusal_of(locks), "accepted") << "a group that is not the user's own";
  ASSERT_EQ(::chown(above.c_str(), 0, 0), 0);
  EXPECT_EQ(refusal_of(locks), "accepted") << "the group of root counts as root";
}

TEST(FileStore, EveryDirectoryAndLinkOnTheWayIsLookedAt) {
  const TemporaryDirectory base;
  fs::create_directories(base / "real/locks");
  fs::create_directories(base / "open");
  ASSERT_EQ(::chmod((base / "real/locks").c_str(), 0700), 0);
  fs::create_directory_symlink("../real", base / "open/link");
  const auto locks = base / "open/link/locks";
  EXPECT_EQ(refusal_of(locks), "accepted");
  // Where the link points to is nobody else's, but others can turn the link.
  ASSERT_EQ(::chmod((base / "open").c_str(), 0777), 0);
  EXPECT_NE(refusal_of(locks).find("write to " + (base / "open").string()), std::string::npos)
      << refusal_of(locks);
  ASSERT_EQ(::chmod((base / "open").c_str(), 01777), 0);
  EXPECT_EQ(refusal_of(locks), "accepted");
  if (::geteuid() == 0) {
    ASSERT_EQ(::lchown((base / "open/link").c_str(), 12345, 0), 0);
    EXPECT_NE(refusal_of(locks).find((base / "open/link").string() + " above it belongs to"),
              std::string::npos)
        << refusal_of(locks);
    ASSERT_EQ(::lchown((base / "open/link").c_str(), 0, 0), 0);
  }
  // And the other way around.
  ASSERT_EQ(::chmod((base / "real").c_str(), 0777), 0);
  EXPECT_NE(refusal_of(locks).find("write to " + (base / "real").string()), std::string::npos)
      << refusal_of(locks);
  fs::create_directory_symlink("round", base / "round");
  EXPECT_NE(refusal_of(base / "round/locks"), "accepted");
}

TEST(FileStore, ADirectoryThatIsMadeAnewIsLookedAtAgain) {
  const TemporaryDirectory base;
  const auto above = base / "above";
  fs::create_directories(above);
  Store store(above / "locks");
  ASSERT_EQ(store.acquire(claim_on({"a"})).verdict, Verdict::granted);
  fs::remove_all(above / "locks");
  ASSERT_EQ(::chmod(above.c_str(), 0777), 0);
  const auto answer = store.acquire(claim_on({"a"}));
  ASSERT_TRUE(answer.why);
  EXPECT_NE(answer.why->message().find("others than its owner can write"), std::string::npos)
      << answer.why->what();
  ASSERT_EQ(::chmod(above.c_str(), 0755), 0);
  EXPECT_EQ(store.acquire(claim_on({"a"})).verdict, Verdict::granted);
}

TEST(FileStore, SymbolicLinksAreRefusedAndTheirTargetsLeftAlone) {
  const TemporaryDirectory directory;
  const TemporaryDirectory elsewhere;
  const auto target = elsewhere / "precious";
  for (const std::string ending : {".lock", ".json", ".next"}) {
    write_file(target, "precious");
    const auto link = directory / (file::shard_name(file::shard_of("name")) + ending);
    fs::remove(link);
    fs::create_symlink(target, link);
    Store store(directory.path());
    const auto answer = store.acquire(claim_on({"name"}));
    ASSERT_TRUE(answer.why) << ending;
    EXPECT_EQ(answer.why->errc(), Errc::refused);
    EXPECT_NE(std::string(answer.why->what()).find(link.string()), std::string::npos);
    EXPECT_EQ(read_file(target), "precious");
    fs::remove(link);
  }
}

TEST(FileStore, ARebootVoidsEveryRecordAndFencesStillRise) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  const auto before = claim_on({"name"});
  const auto first = store.acquire(before);
  ASSERT_EQ(first.verdict, Verdict::granted);
  const auto file = directory / data_of("name");
  auto text = read_file(file);
  const auto boot = text.find("\"boot\":\"") + 8;
  text[boot] = text[boot] == '0' ? '1' : '0';
  // As if that boot's clock had been ahead of ours.
  const auto ahead = first.fences.front().value + 1'000'000'000'000;
  const auto fence = text.find("\"fence\":") + 8;
  text.replace(fence, text.find(',', fence) - fence, std::to_string(ahead));
  write_file(file, text);

  EXPECT_TRUE(store.inspect().resources.empty());
  EXPECT_EQ(store.renew(before).verdict, Verdict::lost);
  const auto second = store.acquire(claim_on({"name"}));
  ASSERT_EQ(second.verdict, Verdict::granted);
  EXPECT_GT(second.fences.front().value, ahead);
}

TEST(FileStore, AFileThatAPowerFailureLeftBehindIsSetAsideInTheNextBoot) {
  const TemporaryDirectory directory;
  const auto held = claim_on({"name"});
  const auto other = claim_on({"other"});
  {
    Store store(directory.path());
    ASSERT_EQ(store.acquire(held).verdict, Verdict::granted);
    ASSERT_EQ(store.acquire(other).verdict, Verdict::granted);
  }
  write_file(directory / data_of("name"), std::string(300, '\0'));
  const auto cut = read_file(directory / data_of("other"));
  write_file(directory / data_of("other"), cut.substr(0, 150));
  {
    Store store(directory.path());
    EXPECT_TRUE(store.acquire(claim_on({"name"})).why) << "the boot is the same";
  }
  write_file(directory / "boot", "an earlier one");
  Store store(directory.path());
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::granted);
  EXPECT_TRUE(store.acquire(claim_on({"other"})).why) << "it names the present boot";
  EXPECT_EQ(read_file(directory / "boot").size(), 36U);
}

TEST(FileStore, AFullDiskIsAnErrorThatLosesNothingAndReleasesStillWork) {
  const TemporaryDirectory base;
  const auto disk = base / "disk";
  fs::create_directory(disk);
  if (::geteuid() != 0 || ::mount("none", disk.c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  {
    Store store(disk / "locks");
    std::vector<Claim> held;
    for (int i = 0; i < 30; ++i) {
      held.push_back(claim_on({"name-" + std::to_string(i), "big"}));
      for (auto& part : held.back().parts) part.mode = Mode::shared;
      held.back().who = who(::getpid(), std::string(1000, 'x'));  // "big" needs several blocks
      ASSERT_EQ(store.acquire(held.back()).verdict, Verdict::granted);
    }
    std::ofstream filler(disk / "filler");
    while (filler << std::string(1024, 'x') << std::flush) {
    }
    const auto answer = store.acquire(claim_on({"one", "more", "name-3"}));
    ASSERT_TRUE(answer.why);
    EXPECT_EQ(answer.why->errc(), Errc::refused) << answer.why->what();
    EXPECT_NE(std::string(answer.why->what()).find("disk full"), std::string::npos);
    EXPECT_NE(std::string(answer.why->what()).find(disk.string()), std::string::npos);

    EXPECT_EQ(store.holders("big"), 30U);
    EXPECT_EQ(store.holders("one"), 0U);
    EXPECT_EQ(store.holders("more"), 0U);
    std::mt19937 order(1);
    std::shuffle(held.begin(), held.end(), order);
    for (const auto& claim : held) {
      EXPECT_EQ(store.renew(claim).verdict, Verdict::granted);
      EXPECT_EQ(store.release(claim).verdict, Verdict::granted);
    }
    EXPECT_TRUE(store.inspect().resources.empty());
  }
  ::umount(disk.c_str());
}

TEST(FileStore, AReleaseWakesTheNextOneOfThisClient) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  const auto first = claim_on({"name"});
  const auto second = claim_on({"name"});
  const auto third = claim_on({"name"});
  ASSERT_EQ(store.acquire(first).verdict, Verdict::granted);
  ASSERT_EQ(store.acquire(second, true).verdict, Verdict::queued);
  const auto last = store.acquire(third, true);
  EXPECT_EQ(last.verdict, Verdict::queued);
  EXPECT_EQ(last.place, 1U);
  ASSERT_EQ(store.release(first).verdict, Verdict::granted);
  EXPECT_TRUE(store.woken(second.owner, kGenerous));
  EXPECT_EQ(store.wakes(), 1U);
  EXPECT_EQ(store.acquire(third, true).verdict, Verdict::queued) << "nobody overtakes";
  EXPECT_EQ(store.acquire(second, true).verdict, Verdict::granted);
}

TEST(FileStore, ARemovedDirectoryIsMadeAnew) {
  const TemporaryDirectory base;
  Store store(base / "locks");
  const auto held = claim_on({"name"});
  const auto before = store.acquire(held);
  ASSERT_EQ(before.verdict, Verdict::granted);
  fs::remove_all(base / "locks");
  EXPECT_EQ(store.renew(held).verdict, Verdict::lost);
  const auto after = store.acquire(claim_on({"name"}));
  ASSERT_EQ(after.verdict, Verdict::granted);
  EXPECT_GT(after.fences.front(), before.fences.front());
  Store other(base / "locks");
  EXPECT_EQ(other.acquire(claim_on({"name"})).verdict, Verdict::busy);
}

TEST(FileStore, TheUrlNeedsAnAbsolutePathAndKnowsItsOptions) {
  const TemporaryDirectory directory;
  const auto entry = stores::file();
  const auto open = [&](const std::string& url) {
    try {
      entry.open(Url::parse(url), nullptr);
    } catch (const Error& error) {
      return error.errc();
    }
    return Errc{};
  };
  const auto good = "file://" + (directory / "locks").string();
  EXPECT_EQ(open(good), Errc{});
  EXPECT_EQ(open(good + "?network=allow"), Errc{});
  EXPECT_EQ(open(good + "?network=maybe"), Errc::invalid);
  EXPECT_EQ(open(good + "?other=1"), Errc::invalid);
  EXPECT_EQ(open("file:relative"), Errc::invalid);
  EXPECT_EQ(open("file://host/path"), Errc::invalid);
}

}  // namespace
}  // namespace interlock::file_test
