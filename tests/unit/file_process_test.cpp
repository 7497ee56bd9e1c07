// The file store between processes and threads: who is dead, who is woken, who is never blocked.
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>

#include "backends/file/process.hpp"
#include "unit/file_store_support.hpp"

namespace interlock::file_test {
namespace {

// A lock file that somebody has locked and does not give back.
class StuckLock {
 public:
  StuckLock(const fs::path& directory, const std::string& resource)
      : fd_(::open((directory / lock_of(resource)).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    EXPECT_EQ(::flock(fd_, LOCK_EX | LOCK_NB), 0);
  }
  StuckLock(const StuckLock&) = delete;
  StuckLock& operator=(const StuckLock&) = delete;
  ~StuckLock() { ::close(fd_); }

 private:
  int fd_;
};

bool is_lockable(const fs::path& file) {
  const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return locked;
}

// For a child that was forked from several threads: allocates nothing, since another thread may have
// been in the middle of that.
bool has_a_lock_file_open() {
  for (int fd = 3; fd < 256; ++fd) {
    std::array<char, 32> link{};
    std::array<char, 4096> target{};
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
    const auto size = ::readlink(link.data(), target.data(), target.size());
    if (size <= 0) continue;
    if (std::string_view(target.data(), static_cast<std::size_t>(size)).ends_with(".lock"))
      return true;
  }
  return false;
}

// Answers that come on another thread.
class Later {
 public:
  Reply reply() {
    return [this](Answer answer) {
      {
        const std::lock_guard lock(mutex_);
        answers_.push_back(std::move(answer));
      }
      changed_.notify_all();
    };
  }
  std::vector<Answer> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kGenerous, [&] { return answers_.size() >= count; }));
    return answers_;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return answers_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Answer> answers_;
};

// Rewrites the one record of this resource, as another process might have written it.
void edit_record(const TemporaryDirectory& directory, const std::string& resource,
                 const std::string& field, const std::string& value) {
  const auto file = directory / data_of(resource);
  auto text = read_file(file);
  const auto at = text.find("\"" + field + "\":") + field.size() + 3;
  text.replace(at, text.find_first_of(",}", at) - at, value);
  write_file(file, text);
}

// Row 4.5.
TEST(FileProcesses, ADeadHolderIsFreedAtOnce) {
  const TemporaryDirectory directory;
  Child child([&] {
    Store store(directory.path());
    store.acquire(claim_on({"name"}));
  });
  ASSERT_TRUE(child.ready());
  Store store(directory.path());
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::busy);
  child.end();
  EXPECT_EQ(store.holders("name"), 0U);
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::granted);
}

TEST(FileProcesses, AZombieIsDead) {
  const TemporaryDirectory directory;
  Child child([&] { Store(directory.path()).acquire(claim_on({"name"})); });
  ASSERT_TRUE(child.ready());
  Store store(directory.path());
  child.kill();  // and nobody waits for it
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::granted);
}

TEST(FileProcesses, AReusedPidIsNotTheHolder) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  Child other([] {});
  ASSERT_EQ(store.acquire(claim_on({"name"}, other.pid())).verdict, Verdict::granted);
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::busy);
  edit_record(directory, "name", "born", std::to_string(file::start_time(other.pid()) - 1));
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::granted);
}

TEST(FileProcesses, AProcessOfAnotherPidNamespaceIsNotKnownToBeDead) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  Child other([] {});
  ASSERT_EQ(store.acquire(claim_on({"name"}, other.pid())).verdict, Verdict::granted);
  edit_record(directory, "name", "realm", "42");
  other.end();
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::busy);
  edit_record(directory, "name", "realm", std::to_string(file::pid_realm()));
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::granted);
}

TEST(FileProcesses, AClaimTiedToNoProcessOutlivesAll) {
  const TemporaryDirectory directory;
  Child child([&] { Store(directory.path()).acquire(claim_on({"name"}, 0)); });
  ASSERT_TRUE(child.ready());
  child.end();
  Store store(directory.path());
  EXPECT_EQ(store.acquire(claim_on({"name"})).verdict, Verdict::busy);
}

TEST(FileProcesses, TheDeathOfTheHolderWakesTheWaiterAtOnce) {
  const TemporaryDirectory directory;
  Child child([&] { Store(directory.path()).acquire(claim_on({"name"})); });
  ASSERT_TRUE(child.ready());
  Store store(directory.path());
  const auto waiter = claim_on({"name"});
  ASSERT_EQ(store.acquire(waiter, true).verdict, Verdict::queued);
  EXPECT_EQ(store.wakes(), 0U);
  child.kill();
  EXPECT_TRUE(store.woken(waiter.owner, kGenerous));
  EXPECT_EQ(store.acquire(waiter, true).verdict, Verdict::granted);
}

TEST(FileProcesses, ADeadWaiterDoesNotHoldUpTheNext) {
  const TemporaryDirectory directory;
  const auto held = claim_on({"name"}, 0);
  Child waiter([&] {
    Store store(directory.path());
    store.acquire(held);
    store.acquire(claim_on({"name"}), true);
  });
  ASSERT_TRUE(waiter.ready());
  Store store(directory.path());
  const auto next = claim_on({"name"});
  const auto queued = store.acquire(next, true);
  ASSERT_EQ(queued.verdict, Verdict::queued);
  EXPECT_EQ(queued.place, 1U);
  waiter.end();
  EXPECT_TRUE(store.woken(next.owner, kGenerous));
  ASSERT_EQ(store.acquire(next, true).verdict, Verdict::queued);
  ASSERT_EQ(store.release(held).verdict, Verdict::granted);
  EXPECT_EQ(store.acquire(next, true).verdict, Verdict::granted);
}

TEST(FileProcesses, AWakeReachesTheClientConcernedAndNoOther) {
  const TemporaryDirectory directory;
  Store holder(directory.path());
  Store first(directory.path());
  Store second(directory.path());
  const auto held = claim_on({"name"});
  const auto next = claim_on({"name"});
  const auto later = claim_on({"name"});
  ASSERT_EQ(holder.acquire(held).verdict, Verdict::granted);
  ASSERT_EQ(first.acquire(next, true).verdict, Verdict::queued);
  ASSERT_EQ(second.acquire(later, true).verdict, Verdict::queued);
  ASSERT_EQ(holder.release(held).verdict, Verdict::granted);
  EXPECT_TRUE(first.woken(next.owner, kGenerous));
  ASSERT_EQ(first.acquire(next, true).verdict, Verdict::granted);
  ASSERT_EQ(first.release(next).verdict, Verdict::granted);
  EXPECT_TRUE(second.woken(later.owner, kGenerous));
  EXPECT_EQ(holder.wakes(), 0U);
  EXPECT_EQ(first.wakes(), 1U);
  EXPECT_EQ(second.wakes(), 1U);
}

TEST(FileProcesses, AnEvictedHolderIsTold) {
  const TemporaryDirectory directory;
  Store holder(directory.path());
  Store other(directory.path());
  const auto held = claim_on({"name"});
  ASSERT_EQ(holder.acquire(held).verdict, Verdict::granted);
  ASSERT_EQ(other.release(held).verdict, Verdict::granted);
  EXPECT_TRUE(holder.woken(held.owner, kGenerous));
}

TEST(FileProcesses, DoorbellsOfTheDeadAreRemovedAndThoseOfTheLivingKept) {
  const TemporaryDirectory directory;
  const auto bells = [&] {
    return std::distance(fs::directory_iterator(directory / "wake"), fs::directory_iterator());
  };
  Child child([&] {
    // Never destroyed: it is killed.
    auto* store = new Store(directory.path());
    store->acquire(claim_on({"name"}));
  });
  ASSERT_TRUE(child.ready());
  EXPECT_EQ(bells(), 1);
  { Store store(directory.path()); }
  EXPECT_EQ(bells(), 1);
  child.end();
  { Store store(directory.path()); }
  EXPECT_EQ(bells(), 0);
}

TEST(FileProcesses, ALockThatIsNotGivenBackIsUnreachableByTheDeadline) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  const StuckLock stuck(directory.path(), "name");
  const auto begin = BootClock::now();
  Answer answer;
  store.backend().acquire(claim_on({"name"}), true,
                          {.deadline = begin + 100ms, .caller_waits = true},
                          [&](Answer a) { answer = std::move(a); });
  EXPECT_GE(BootClock::now() - begin, 100ms);
  EXPECT_LT(BootClock::now() - begin, kGenerous);
  ASSERT_TRUE(answer.why);
  EXPECT_EQ(answer.why->errc(), Errc::unreachable);
  const std::string text = answer.why->what();
  EXPECT_NE(text.find((directory / lock_of("name")).string()), std::string::npos) << text;
  EXPECT_NE(text.find("process " + std::to_string(::getpid())), std::string::npos) << text;

  Snapshot snapshot;
  store.backend().inspect({.resources = {"name"}},
                          {.deadline = BootClock::now() + 10ms, .caller_waits = true},
                          [&](Snapshot s) { snapshot = std::move(s); });
  ASSERT_TRUE(snapshot.why);
  EXPECT_EQ(snapshot.why->errc(), Errc::unreachable);
}

TEST(FileProcesses, ACallThatMayNotBlockDoesNotAndHoldsUpNobodyElse) {
  const TemporaryDirectory directory;
  Later late;
  Later free;
  Later at_end;
  {
    const StuckLock stuck(directory.path(), "stuck");
    Store store(directory.path());
    const auto begin = BootClock::now();
    store.backend().acquire(claim_on({"stuck"}), false, {.deadline = begin + 500ms}, late.reply());
    store.backend().acquire(claim_on({"free"}), false, {.deadline = begin + 60s}, free.reply());
    store.backend().acquire(claim_on({"stuck", "free2"}), false, {}, at_end.reply());
    EXPECT_EQ(free.wait_for(1).front().verdict, Verdict::granted);
    EXPECT_EQ(at_end.count(), 0U);
    const auto answer = late.wait_for(1).front();
    ASSERT_TRUE(answer.why);
    EXPECT_EQ(answer.why->errc(), Errc::unreachable);
    EXPECT_GE(BootClock::now() - begin, 500ms);
  }
  // What could not be done is answered when the store is closed, and not later.
  ASSERT_EQ(at_end.count(), 1U);
  EXPECT_EQ(at_end.wait_for(1).front().verdict, Verdict::unknown);
  Store store(directory.path());
  EXPECT_EQ(store.holders("stuck"), 0U);
  EXPECT_EQ(store.holders("free2"), 0U);
}

TEST(FileProcesses, AReplyMayDestroyTheStore) {
  const TemporaryDirectory directory;
  auto backend = file_store(directory.path());
  std::atomic<int> replies{0};
  std::atomic<bool> destroyed{false};
  const auto first = claim_on({"name"});
  const auto second = claim_on({"other"});
  auto* raw = backend.get();
  raw->acquire(first, false, {}, [&](const Answer& answer) {
    EXPECT_EQ(answer.verdict, Verdict::granted);
    raw->acquire(second, false, {}, [&](const Answer&) { ++replies; });
    raw->release(first, {}, [&](const Answer&) { ++replies; });
    backend.reset();
    destroyed = true;
  });
  const auto end = BootClock::now() + kGenerous;
  while (!destroyed && BootClock::now() < end) std::this_thread::yield();
  ASSERT_TRUE(destroyed);
  Store store(directory.path());
  while (store.holders("name") > 0 && BootClock::now() < end) std::this_thread::yield();
  EXPECT_EQ(store.holders("name"), 0U) << "what was asked before is done";
  EXPECT_EQ(replies, 0) << "and nobody is told afterwards";
}

TEST(FileProcesses, ThousandsOfWaitersOfOneClientAreServedTogether) {
  const TemporaryDirectory directory;
  Later later;
  Store store(directory.path());
  const auto held = claim_on({"name"});
  ASSERT_EQ(store.acquire(held).verdict, Verdict::granted);
  std::vector<Claim> waiters;
  for (int i = 0; i < 2000; ++i) waiters.push_back(claim_on({"name"}));
  for (const auto& waiter : waiters) {
    store.backend().acquire(waiter, true, {}, later.reply());
  }
  const auto answers = later.wait_for(waiters.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_EQ(answers[i].verdict, Verdict::queued);
    EXPECT_EQ(answers[i].place, i) << "in order of arrival";
  }
}

TEST(FileProcesses, AClaimOnSeveralResourcesIsSeenWholeOrNotAtAll) {
  const TemporaryDirectory directory;
  const std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};
  std::atomic<bool> stop{false};
  std::atomic<int> grants{0};
  std::atomic<int> holders{0};
  std::vector<std::thread> threads;
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Store store(directory.path());
      std::mt19937 random(seed + t);
      while (!stop) {
        auto some = names;
        std::shuffle(some.begin(), some.end(), random);
        some.resize(2 + random() % 3);
        const bool everything = random() % 2 == 0;
        const auto claim = claim_on(everything ? names : some);
        const auto answer = store.acquire(claim);
        if (answer.verdict == Verdict::granted) {
          ++grants;
          if (everything) {
            EXPECT_EQ(++holders, 1) << "two hold all of it";
            --holders;
          }
          EXPECT_EQ(store.release(claim).verdict, Verdict::granted);
        } else {
          EXPECT_EQ(answer.verdict, Verdict::busy) << (answer.why ? answer.why->what() : "");
        }
      }
    });
  }
  Store store(directory.path());
  const auto end = BootClock::now() + 10s;
  int looks = 0;
  for (; BootClock::now() < end && (looks < 300 || grants < 300); ++looks) {
    const auto snapshot = store.inspect(looks % 2 == 0 ? Query{.resources = names} : Query{});
    EXPECT_FALSE(snapshot.why) << snapshot.why->what();
    std::map<Owner, std::size_t> parts;
    for (const auto& state : snapshot.resources) {
      EXPECT_EQ(state.holders.size(), 1U);
      for (const auto& holder : state.holders) ++parts[holder.owner];
    }
    for (const auto& [owner, count] : parts) {
      EXPECT_GE(count, 2U) << "half a claim";
    }
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_GT(grants, 0);
  EXPECT_TRUE(store.inspect().resources.empty());
}

TEST(FileProcesses, AClaimOnNamesNeverUsedBeforeIsSeenWholeToo) {
  for (int round = 0; round < 50; ++round) {
    const TemporaryDirectory directory;
    const std::vector<std::string> names{"a", "b", "c", "d", "e", "f"};
    std::atomic<bool> stop{false};
    std::atomic<int> looks{0};
    std::thread looker([&] {
      Store store(directory.path());
      for (; !stop; ++looks) {
        const auto snapshot = store.inspect(looks % 2 == 0 ? Query{.resources = names} : Query{});
        EXPECT_FALSE(snapshot.why) << snapshot.why->what();
        EXPECT_TRUE(snapshot.resources.empty() || snapshot.resources.size() == names.size())
            << snapshot.resources.size() << " in look " << looks << " of round " << round;
      }
    });
    Store store(directory.path());
    const auto claim = claim_on(names);
    while (looks == 0) std::this_thread::yield();
    EXPECT_EQ(store.acquire(claim).verdict, Verdict::granted);
    const int before = looks;
    while (looks < before + 2) std::this_thread::yield();
    EXPECT_EQ(store.release(claim).verdict, Verdict::granted);
    stop = true;
    looker.join();
  }
}

TEST(FileStoreListing, ManyShardsAreAllListed) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  std::vector<Claim> claims;
  for (int hundred = 0; hundred < 3; ++hundred) {
    std::vector<std::string> names;
    for (int i = 0; i < 100; ++i) names.push_back("name-" + std::to_string(100 * hundred + i));
    claims.push_back(claim_on(names));
    ASSERT_EQ(store.acquire(claims.back()).verdict, Verdict::granted);
  }
  EXPECT_EQ(store.inspect().resources.size(), 300U);
  EXPECT_EQ(store.inspect({.resources = {}, .prefix = "name-29"}).resources.size(), 11U);
  for (const auto& claim : claims) EXPECT_EQ(store.release(claim).verdict, Verdict::granted);
  EXPECT_TRUE(store.inspect().resources.empty());
}

TEST(FileStoreDescriptors, AClaimThatNeedsMoreThanThereMayBeIsRefusedAtOnce) {
  const TemporaryDirectory directory;
  Store store(directory.path());
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back("name-" + std::to_string(i));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = std::min<rlim_t>(256, before.rlim_max), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto answer = store.acquire(claim_on(names));
  const auto one = store.acquire(claim_on({"name-0"}));
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(answer.why);
  EXPECT_EQ(answer.why->errc(), Errc::refused);
  EXPECT_FALSE(answer.why->retryable());
  EXPECT_NE(std::string(answer.why->what()).find("ulimit -n"), std::string::npos)
      << answer.why->what();
  EXPECT_EQ(one.verdict, Verdict::granted);
}

TEST(FileProcesses, AForkInTheMiddleLeavesNoLockBehind) {
  const TemporaryDirectory directory;
  std::atomic<bool> stop{false};
  std::atomic<int> cycles{0};
  std::vector<pid_t> children;
  {
    Store store(directory.path());
    std::thread busy([&] {
      while (!stop) {
        const auto claim = claim_on({"name"});
        store.acquire(claim);
        store.release(claim);
        ++cycles;
      }
    });
    for (int i = 0; i < 30; ++i) {
      const int before = cycles;
      while (cycles < before + 3) std::this_thread::yield();
      const pid_t child = ::fork();
      if (child == 0) {
        ::_exit(has_a_lock_file_open() ? 1 : 0);
      }
      children.push_back(child);
    }
    stop = true;
    busy.join();
  }
  for (const auto child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "the child has a lock file open";
  }
  EXPECT_TRUE(is_lockable(directory / lock_of("name")));
}

TEST(FileProcesses, AForkedChildCantUseItsParentsStoreAndLeavesItAlone) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "a child that was forked from several threads can't allocate under this sanitizer";
#endif
  const TemporaryDirectory directory;
  auto* store = new Store(directory.path());
  const auto held = claim_on({"name"});
  const auto waiter = claim_on({"name"});
  ASSERT_EQ(store->acquire(held).verdict, Verdict::granted);
  ASSERT_EQ(store->acquire(waiter, true).verdict, Verdict::queued);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto answer = store->acquire(claim_on({"other"}));
    const bool refused = answer.why && answer.why->errc() == Errc::forked;
    delete store;
    ::_exit(refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory / "wake"), fs::directory_iterator()), 1);
  EXPECT_EQ(store->release(held).verdict, Verdict::granted);
  EXPECT_TRUE(store->woken(waiter.owner, kGenerous));
  delete store;
}

}  // namespace
}  // namespace interlock::file_test
