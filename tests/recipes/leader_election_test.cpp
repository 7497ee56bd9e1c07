#include <unistd.h>

#include <array>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <random>

#include "recipes/recipe.hpp"

namespace interlock::recipes {
namespace {

/// What an election said, in order: "gain 17", "loss it resigned".
class Diary {
 public:
  [[nodiscard]] ElectionOptions options(ElectionOptions options = {}) {
    options.on_gain = [this](Fence term) { write("gain " + std::to_string(term.value)); };
    options.on_loss = [this](const std::string& why) { write("loss " + why); };
    return options;
  }
  void write(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  [[nodiscard]] std::deque<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  [[nodiscard]] std::size_t count(const std::string& beginning) {
    const auto all = lines();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const auto& line) { return line.starts_with(beginning); }));
  }

 private:
  std::mutex mutex_;
  std::deque<std::string> lines_;
};

RECIPE_SUITE(Election);

// Row 0.7 and acceptance case 38.
TEST_P(Election, OneOfFiveLeadsAndWhenItResignsAnotherDoes) {
  std::vector<std::unique_ptr<LeaderElection>> candidates;
  for (int i = 0; i < 5; ++i) {
    candidates.push_back(std::make_unique<LeaderElection>(client(), "orders"));
    candidates.back()->start();
  }
  const auto leaders = [&] {
    return std::count_if(candidates.begin(), candidates.end(),
                         [](const auto& candidate) { return candidate->is_leader(); });
  };
  ASSERT_TRUE(eventually([&] { return leaders() == 1 && waiters("leader:orders") == 4; }));
  Fence last{};
  while (!candidates.empty()) {
    ASSERT_TRUE(eventually([&] { return leaders() == 1; }));
    const auto leader = std::find_if(candidates.begin(), candidates.end(),
                                     [](const auto& candidate) { return candidate->is_leader(); });
    EXPECT_GT((*leader)->term().value(), last);
    last = (*leader)->term().value();
    (*leader)->resign();
    EXPECT_FALSE((*leader)->is_leader());
    candidates.erase(leader);
  }
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Election, TriesOnceWithoutWaiting) {
  LeaderElection first(client(), "orders");
  LeaderElection second(client(), "orders");
  EXPECT_FALSE(first.is_leader());
  EXPECT_EQ(first.term(), std::nullopt);
  EXPECT_TRUE(first.over().stop_requested());
  EXPECT_TRUE(first.try_lead());
  EXPECT_TRUE(first.try_lead()) << "it leads already";
  EXPECT_FALSE(second.try_lead());
  EXPECT_EQ(waiters("leader:orders"), 0U);
  const auto over = first.over();
  EXPECT_FALSE(over.stop_requested());
  first.resign();
  first.resign();
  EXPECT_TRUE(over.stop_requested());
  EXPECT_TRUE(second.try_lead());
}

TEST_P(Election, ACampaignWaitsForTheTermOfAnother) {
  auto first = std::make_unique<LeaderElection>(client(), "orders");
  LeaderElection second(client(), "orders");
  const auto old_term = first->campaign();
  EXPECT_EQ(first->campaign(), old_term);
  auto term = std::async(std::launch::async, [&] { return second.campaign(); });
  ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 1; }));
  EXPECT_FALSE(second.is_leader());
  EXPECT_FALSE(second.try_lead());
  first.reset();
  EXPECT_GT(term.get(), old_term);
  EXPECT_TRUE(second.is_leader());
}

TEST_P(Election, ACampaignIsGivenUpByItsTokenAndByResigning) {
  LeaderElection leader(client(), "orders");
  ASSERT_TRUE(leader.try_lead());
  LeaderElection candidate(client(), "orders");
  const auto campaign = [&](const std::stop_token& stop) {
    return std::async(std::launch::async, [&candidate, stop] {
      try {
        (void)candidate.campaign(stop);
      } catch (const Error& error) {
        return error.errc();
      }
      return Errc::invalid;
    });
  };
  std::stop_source stop;
  auto stopped = campaign(stop.get_token());
  ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 1; }));
  stop.request_stop();
  EXPECT_EQ(stopped.get(), Errc::cancelled);
  // Its place goes in the background. To resign before a campaign has begun would end nothing.
  ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 0; }));
  auto resigned = campaign({});
  ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 1; }));
  candidate.resign();
  EXPECT_EQ(resigned.get(), Errc::cancelled);
  candidate.start();
  ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 1; }));
  candidate.resign();
  EXPECT_TRUE(eventually([&] { return waiters("leader:orders") == 0; }));
}

/// By the system's account.
bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_ends = text.rfind(") ");
  return name_ends != std::string::npos && text.substr(name_ends + 2).starts_with('S');
}

TEST_P(Election, ResigningEndsAllCampaigns) {
  LeaderElection leader(client(), "orders");
  ASSERT_TRUE(leader.try_lead());
  LeaderElection candidate(client(), "orders");
  for (const bool stands : {true, false}) {
    SCOPED_TRACE(stands ? "beside start()" : "without start()");
    if (stands) candidate.start();
    std::array<std::atomic<pid_t>, 3> threads{};
    std::vector<std::future<bool>> campaigns;
    for (auto& thread : threads) {
      campaigns.push_back(std::async(std::launch::async, [&] {
        thread = ::gettid();
        try {
          (void)candidate.campaign();
        } catch (const Error& error) {
          return error.errc() == Errc::cancelled;
        }
        return false;
      }));
    }
    // One that begins later is not ended. One that sleeps for a while has begun.
    int looks = 0;
    ASSERT_TRUE(eventually([&] {
      const bool all = std::all_of(threads.begin(), threads.end(), [](const auto& thread) {
        return thread != 0 && sleeps(thread);
      });
      looks = all ? looks + 1 : 0;
      std::this_thread::sleep_for(5ms);
      return looks >= 5 && waiters("leader:orders") == 1;
    }));
    candidate.resign();
    bool ended = true;
    for (auto& campaign : campaigns) {
      ended = ended && campaign.wait_for(kPatience) == std::future_status::ready;
      while (campaign.wait_for(10ms) != std::future_status::ready) candidate.resign();
      EXPECT_TRUE(campaign.get());
    }
    ASSERT_TRUE(ended);
    ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 0; }));
  }
  leader.resign();
  EXPECT_FALSE(candidate.is_leader());
  EXPECT_TRUE(leader.try_lead()) << "nobody is left in line";
}

/// Resigns at the first grant: the store has given the lock, and nobody has the lease yet.
class ResignsWhenGranted final : public Observer {
 public:
  void on(const Observation& observation) noexcept override {
    if (observation.event != Event::granted) return;
    if (auto* const it = election.exchange(nullptr)) {
      it->resign();
      resigned = true;
    }
  }
  std::atomic<LeaderElection*> election = nullptr;
  std::atomic<bool> resigned = false;
};

TEST_P(Election, NoTermBeginsAfterResigningWhicheverWayItIsGranted) {
  const std::map<std::string, std::function<void(LeaderElection&)>> ways{
      {"start", [](LeaderElection& it) { it.start(); }},
      {"try_lead", [](LeaderElection& it) { EXPECT_FALSE(it.try_lead()); }},
      {"campaign", [](LeaderElection& it) { EXPECT_THROW((void)it.campaign(), Error); }}};
  for (const auto& [name, lead] : ways) {
    SCOPED_TRACE(name);
    Diary diary;
    const auto observer = std::make_shared<ResignsWhenGranted>();
    LeaderElection it(Client(store().open(), {.observer = observer}), "orders", diary.options());
    observer->election = &it;
    lead(it);
    ASSERT_TRUE(eventually([&] { return observer->resigned && nothing_left(); }));
    EXPECT_FALSE(it.is_leader());
    EXPECT_EQ(diary.count("gain"), 0U);
  }
}

TEST_P(Election, TheNextOneWaitsUntilTheOldOneHasStopped) {
  Diary diary;
  LeaderElection* next = nullptr;
  auto options = diary.options();
  options.on_loss = [&](const std::string& why) {
    EXPECT_EQ(why, "it resigned");
    EXPECT_EQ(holders("leader:orders"), 1U);
    EXPECT_FALSE(next->is_leader());
    diary.write("stopped");
  };
  LeaderElection old(client(), "orders", options);
  LeaderElection other(client(), "orders", {.on_gain = [&](Fence) { diary.write("next"); }});
  next = &other;
  old.start();
  ASSERT_TRUE(eventually([&] { return diary.lines().size() == 1; }));
  other.start();
  ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 1; }));
  old.resign();
  ASSERT_TRUE(eventually([&] { return diary.lines().size() == 3; }));
  EXPECT_EQ(diary.lines()[1], "stopped");
  EXPECT_EQ(diary.lines()[2], "next");
}

TEST_P(Election, ALeaderWhoseLockIsBrokenIsToldAndCampaignsAgain) {
  Diary diary;
  LeaderElection election(client(), "orders", diary.options({.ttl = 1s}));
  election.start();
  ASSERT_TRUE(eventually([&] { return diary.count("gain") == 1; }));
  const auto term = election.term().value();
  store().break_hold("leader:orders");
  ASSERT_TRUE(eventually([&] { return diary.count("gain") == 2; }));
  EXPECT_EQ(diary.count("loss"), 1U);
  EXPECT_TRUE(diary.lines()[1].starts_with("loss"));
  EXPECT_TRUE(eventually([&] { return election.term() > term; }));
}

TEST_P(Election, ALeaderThatIsCutOffStopsBeforeAnotherLeadsAndComesBack) {
  auto network = chaos(store().open());
  auto* const cable = network.get();
  std::atomic<bool> works = false;
  std::atomic<int> gains = 0;
  std::atomic<bool> overlap = false;
  LeaderElection cut_off(Client(std::move(network)), "orders",
                         {.ttl = 2s,
                          .on_gain =
                              [&](Fence) {
                                works = true;
                                ++gains;
                              },
                          .on_loss = [&](const std::string&) { works = false; }});
  LeaderElection standby(client(), "orders", {.on_gain = [&](Fence) {
                           if (works) overlap = true;
                         }});
  cut_off.start();
  ASSERT_TRUE(eventually([&] { return cut_off.is_leader() && gains == 1; }));
  standby.start();
  ASSERT_TRUE(eventually([&] { return waiters("leader:orders") == 1; }));
  cable->set({.fail = 1.0});
  ASSERT_TRUE(eventually([&] { return standby.is_leader(); }));
  EXPECT_FALSE(cut_off.is_leader());
  EXPECT_TRUE(eventually([&] { return !works; }));
  // On a loaded machine a thread may come late by more than the margin; is_leader() never does.
  if (overlap) GTEST_LOG_(INFO) << "on_loss came later than the next leader";
  cable->set({});
  standby.resign();
  ASSERT_TRUE(eventually([&] { return cut_off.is_leader() && gains == 2; }));
}

TEST_P(Election, ACallbackMayResignAndStandAgain) {
  Diary diary;
  LeaderElection* election = nullptr;
  std::atomic<int> gains = 0;
  ElectionOptions options;
  options.on_gain = [&](Fence term) {
    EXPECT_TRUE(election->is_leader());
    EXPECT_EQ(election->campaign(), term);
    diary.write("gain");
    if (++gains < 3) election->resign();
  };
  options.on_loss = [&](const std::string& why) {
    EXPECT_FALSE(election->is_leader());
    EXPECT_FALSE(election->try_lead());
    EXPECT_THROW((void)election->campaign(), Error);
    diary.write("loss " + why);
    election->start();
  };
  LeaderElection it(client(), "orders", options);
  election = &it;
  it.start();
  ASSERT_TRUE(eventually([&] { return gains == 3; }));
  EXPECT_EQ(diary.lines(), (std::deque<std::string>{"gain", "loss it resigned", "gain",
                                                    "loss it resigned", "gain"}));
  options.on_loss = {};
}

TEST_P(Election, AnybodyCanAskWhoLeads) {
  LeaderElection leader(client(), "orders", {.label = "node 1"});
  const LeaderElection onlooker(client(), "orders");
  EXPECT_FALSE(onlooker.leader());
  ASSERT_TRUE(leader.try_lead());
  const auto seen = onlooker.leader();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->label, "node 1");
  EXPECT_EQ(seen->pid, getpid());
  EXPECT_FALSE(seen->host.empty());
  EXPECT_EQ(seen->term, leader.term());
  EXPECT_LT(std::chrono::system_clock::now() - seen->since, kPatience);
}

TEST_P(Election, AnObserverIsToldOfEachChangeAndOfNobody) {
  Diary diary;
  const auto note = [&](const std::optional<Leader>& leader) {
    diary.write(leader ? leader->label : "nobody");
  };
  LeaderElection onlooker(client(), "orders", {.look_every = 10ms});
  onlooker.observe(note);
  const auto told = [&](const std::deque<std::string>& lines) {
    return eventually([&] { return diary.lines() == lines; });
  };
  ASSERT_TRUE(told({"nobody"}));
  LeaderElection first(client(), "orders", {.label = "first"});
  ASSERT_TRUE(first.try_lead());
  ASSERT_TRUE(told({"nobody", "first"}));
  first.resign();
  ASSERT_TRUE(told({"nobody", "first", "nobody"}));
  LeaderElection second(client(), "orders", {.label = "second"});
  ASSERT_TRUE(second.try_lead());
  ASSERT_TRUE(told({"nobody", "first", "nobody", "second"}));
  onlooker.observe([&](const std::optional<Leader>&) { diary.write("late"); });
  ASSERT_TRUE(told({"nobody", "first", "nobody", "second", "late"}));
}

TEST_P(Election, WhoIsToldOfItsTermIsToldOfItsEndByTheDestructor) {
  const auto locks = client();
  for (int i = 0; i < 1000; ++i) {
    int gains = 0;
    int losses = 0;
    {
      LeaderElection it(
          locks, "orders",
          {.on_gain = [&](Fence) { ++gains; }, .on_loss = [&](const std::string&) { ++losses; }});
      EXPECT_TRUE(it.try_lead());
      for (int pause = 0; pause < i % 25; ++pause) std::this_thread::yield();
    }
    ASSERT_EQ(gains, losses) << "round " << i;
  }
}

TEST_P(Election, CallbacksComeOneByOneAndTakeTurns) {
  const auto locks = client();
  std::atomic<int> inside = 0;
  std::atomic<int> gains = 0;
  std::atomic<int> losses = 0;
  std::atomic<bool> wrong = false;
  {
    LeaderElection* election = nullptr;
    const auto enter = [&](auto then) {
      if (inside.fetch_add(1) != 0) wrong = true;
      std::this_thread::yield();
      then();
      inside.fetch_sub(1);
    };
    LeaderElection it(
        locks, "orders",
        {.on_gain = [&](Fence) { enter([&] { wrong = wrong || gains++ != losses; }); },
         .on_loss = [&](const std::string&) { enter([&] { wrong = wrong || ++losses != gains; }); },
         .look_every = 1ms});
    election = &it;
    it.observe([&](const std::optional<Leader>&) { enter([] {}); });
    std::vector<std::jthread> crowd;
    for (unsigned seed = 1; seed <= 3; ++seed) {
      crowd.emplace_back([election, seed] {
        std::minstd_rand random(seed);
        for (int i = 0; i < 20; ++i) {
          switch (random() % 3) {
            case 0:
              election->start();
              break;
            case 1:
              election->resign();
              break;
            default:
              (void)election->try_lead();
          }
        }
      });
    }
    crowd.clear();
    it.start();
    EXPECT_TRUE(eventually([&] { return it.is_leader(); }));
  }
  EXPECT_FALSE(wrong);
  EXPECT_EQ(gains, losses) << "the destructor has told all";
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Election, BadInputIsRefused) {
  const auto locks = client();
  EXPECT_THROW(LeaderElection(locks, ""), Error);
  EXPECT_THROW(LeaderElection(locks, "a\nb"), Error);
  EXPECT_THROW(LeaderElection(locks, "a", {.ttl = 0s}), Error);
  EXPECT_THROW(LeaderElection(locks, "a", {.ttl = 3s, .margin = 2s}), Error);
  EXPECT_THROW(LeaderElection(locks, "a", {.look_every = 0s}), Error);
}

// With a clock that is moved by hand, nothing has to run for is_leader() to be right.
TEST(ElectionClock, ALeaderIsOutTheMomentItsMarginBegins) {
  auto clock = std::make_shared<ManualClock>();
  const MemoryStore store(clock);
  auto network = chaos(store.open());
  auto* const cable = network.get();
  const Client cut_off(std::move(network), {.clock = clock});
  const Client other(store.open(), {.clock = clock});
  Diary diary;
  LeaderElection leader(cut_off, "orders", diary.options({.ttl = 30s, .margin = 5s}));
  LeaderElection standby(other, "orders");
  ASSERT_TRUE(leader.try_lead());
  const auto over = leader.over();
  ASSERT_TRUE(eventually([&] { return diary.count("gain") == 1; }));
  cable->set({.fail = 1.0});
  clock->advance(24s);
  EXPECT_TRUE(leader.is_leader());
  clock->advance(1s);
  EXPECT_FALSE(leader.is_leader());
  EXPECT_EQ(leader.term(), std::nullopt);
  EXPECT_TRUE(leader.over().stop_requested());
  EXPECT_FALSE(standby.try_lead()) << "five seconds to stop";
  EXPECT_TRUE(eventually([&] { return diary.count("loss") == 1; }));
  EXPECT_TRUE(over.stop_requested());
  EXPECT_EQ(diary.lines().back(), "loss it could not be renewed in time");
  clock->advance(5s);
  EXPECT_TRUE(standby.try_lead());
}

}  // namespace
}  // namespace interlock::recipes
