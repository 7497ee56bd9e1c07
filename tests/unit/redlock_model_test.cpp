// Redlock's fences, by exhaustion: every order in which requests arrive, replies arrive or get lost,
// locks expire and nodes lose their data, for a few nodes and clients and one resource.
//
// A client takes one grant, in two phases (see docs/guarantees.md):
//
//   1. each node, if it is free, takes the owner down, counts up, and answers with that number;
//      with a majority of answers, the fence is the largest of them;
//   2. each node whose answer counted raises its counter to the fence, if this is still the same
//      hold; with a majority of answers, the client has its grant.
//
// What has to hold, whatever happens:
//
//   unique   no two grants have the same fence;
//   ordered  a grant that was had before another one was begun has the smaller fence;
//
// and each rule of the protocol is needed: without it, the search finds a history that breaks one.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

struct Rules {
  int nodes = 3;
  int clients = 2;
  bool second_phase = true;       ///< else the fence is what phase one says
  bool only_holders = true;       ///< phase two needs the hold of phase one
  bool only_counted = true;       ///< phase two needs that phase one's answer counted
  bool skip_who_knows = true;     ///< a node that gave out the fence itself needs no phase two
  int losses = 0;                 ///< so many nodes may lose their data, each once
  bool new_nodes_wait = true;     ///< until grants that are under way have ended
  bool new_nodes_repaired = true; ///< from a majority that counts
};

constexpr int kMostNodes = 5;
constexpr int kMostClients = 3;
constexpr std::uint8_t kNobody = 0xff;

struct Node {
  std::uint8_t holder = kNobody;
  std::uint8_t hold = 0;   ///< the number of the present hold
  std::uint8_t count = 0;
  std::uint8_t fresh = 0;  ///< lost its data and does not count yet
  std::uint8_t lost = 0;   ///< so often
};

enum class Step : std::uint8_t { idle, first, second, granted, failed };
/// What became of one request to one node.
enum class Call : std::uint8_t { none, sent, done, answered, lost };

struct Client {
  Step step = Step::idle;
  std::uint8_t fence = 0;
  std::uint8_t before = 0;  ///< the largest fence that was granted when it began
  /// Nodes whose loss it has not outlived: granted with them, it may still be on its way.
  std::array<Call, kMostNodes> first{};
  std::array<std::uint8_t, kMostNodes> number{};  ///< phase one's
  std::uint8_t counted = 0;                       ///< nodes whose first answer counted
  std::array<Call, kMostNodes> second{};
  std::array<std::uint8_t, kMostNodes> kept{};  ///< what phase two will answer
};

struct State {
  std::array<Node, kMostNodes> nodes{};
  std::array<Client, kMostClients> clients{};
};

// All members are bytes: no padding, and equal states are equal bytes.
static_assert(sizeof(Client) == 4 + 4 * kMostNodes);
static_assert(sizeof(State) == 5 * kMostNodes + (4 + 4 * kMostNodes) * kMostClients);

class Search {
 public:
  explicit Search(const Rules& rules) : rules_(rules) {}

  /// What went wrong first; empty: nothing can.
  std::string run() {
    visit(State{});
    while (!open_.empty() && wrong_.empty()) {
      const State state = open_.back();
      open_.pop_back();
      expand(state);
    }
    return wrong_;
  }
  [[nodiscard]] std::size_t states() const { return seen_.size(); }

 private:
  [[nodiscard]] int majority() const { return rules_.nodes / 2 + 1; }

  // Two states that differ only in which client is which are one, and so are those that differ in
  // which node is which.
  [[nodiscard]] State canonical(const State& state) const {
    State best = state;
    std::array<int, kMostNodes> order{0, 1, 2, 3, 4};
    do {
      State other = state;
      for (int n = 0; n < rules_.nodes; ++n) {
        const auto from = static_cast<std::size_t>(order.at(static_cast<std::size_t>(n)));
        const auto to = static_cast<std::size_t>(n);
        other.nodes[to] = state.nodes[from];
        for (std::size_t c = 0; c < kMostClients; ++c) {
          other.clients[c].first[to] = state.clients[c].first[from];
          other.clients[c].number[to] = state.clients[c].number[from];
          other.clients[c].second[to] = state.clients[c].second[from];
          other.clients[c].kept[to] = state.clients[c].kept[from];
        }
      }
      for (std::size_t c = 0; c < kMostClients; ++c) {
        std::uint8_t counted = 0;
        for (int n = 0; n < rules_.nodes; ++n) {
          if ((state.clients[c].counted >> order.at(static_cast<std::size_t>(n)) & 1) != 0)
            counted = static_cast<std::uint8_t>(counted | 1U << n);
        }
        other.clients[c].counted = counted;
      }
      if (std::memcmp(&other, &best, sizeof(State)) < 0) best = other;
    } while (std::next_permutation(order.begin(), order.begin() + rules_.nodes));
    return best;
  }

  void visit(const State& state) {
    if (!wrong_.empty()) return;
    const State same = canonical(state);
    std::string key(reinterpret_cast<const char*>(&same), sizeof(State));
    if (seen_.insert(std::move(key)).second) open_.push_back(same);
  }

  void expand(const State& state) {
    for (std::size_t n = 0; n < static_cast<std::size_t>(rules_.nodes); ++n) {
      expire(state, n);
      lose_data(state, n);
      come_back(state, n);
    }
    for (std::size_t c = 0; c < static_cast<std::size_t>(rules_.clients); ++c) {
      begin(state, c);
      if (state.clients[c].step != Step::first && state.clients[c].step != Step::second) continue;
      give_up(state, c);
      for (std::size_t n = 0; n < static_cast<std::size_t>(rules_.nodes); ++n) {
        serve_first(state, c, n);
        hear_first(state, c, n);
        serve_second(state, c, n);
        hear_second(state, c, n);
      }
      start_second(state, c);
    }
  }

  void expire(State state, std::size_t n) {
    if (state.nodes[n].holder == kNobody) return;
    state.nodes[n].holder = kNobody;
    state.nodes[n].hold = 0;
    visit(state);
  }

  void lose_data(State state, std::size_t n) {
    int losses = 0;
    for (const auto& node : state.nodes) losses += node.lost;
    if (losses >= rules_.losses) return;
    state.nodes[n] = {.lost = 1};
    state.nodes[n].fresh = 1;
    visit(state);
  }

  // A new node begins to count.
  void come_back(State state, std::size_t n) {
    auto& node = state.nodes[n];
    if (node.fresh == 0) return;
    if (rules_.new_nodes_wait) {
      for (const auto& client : state.clients) {
        // Granted with its lost vote, and not over yet: some other node still holds it.
        const bool under_way = client.step == Step::first || client.step == Step::second;
        if (under_way && client.first[n] != Call::none && client.first[n] != Call::sent) return;
      }
    }
    node.fresh = 0;
    if (!rules_.new_nodes_repaired) return visit(state);
    // Any majority that counts will do.
    for (unsigned set = 0; set < 1U << rules_.nodes; ++set) {
      if (std::popcount(set) < majority() || (set >> n & 1U) != 0) continue;
      bool good = true;
      State repaired = state;
      for (std::size_t other = 0; other < static_cast<std::size_t>(rules_.nodes); ++other) {
        if ((set >> other & 1U) == 0) continue;
        good = good && state.nodes[other].fresh == 0;
        repaired.nodes[n].count = std::max(repaired.nodes[n].count, state.nodes[other].count);
      }
      if (good) visit(repaired);
    }
  }

  void begin(State state, std::size_t c) {
    auto& client = state.clients[c];
    if (client.step != Step::idle) return;
    // They are all alike: the next one to begin is the first that has not.
    if (c > 0 && state.clients[c - 1].step == Step::idle) return;
    client.step = Step::first;
    for (const auto& other : state.clients) {
      if (other.step == Step::granted) client.before = std::max(client.before, other.fence);
    }
    for (std::size_t n = 0; n < static_cast<std::size_t>(rules_.nodes); ++n)
      client.first[n] = Call::sent;
    visit(state);
  }

  void give_up(State state, std::size_t c) {
    auto& client = state.clients[c];
    client = {.step = Step::failed};
    visit(state);  // what it left behind expires
  }

  void serve_first(State state, std::size_t c, std::size_t n) {
    auto& client = state.clients[c];
    auto& node = state.nodes[n];
    if (client.first[n] != Call::sent || node.fresh != 0 || node.holder != kNobody) return;
    node.holder = static_cast<std::uint8_t>(c);
    node.hold = ++node.count;
    client.first[n] = Call::done;
    client.number[n] = node.hold;
    visit(state);
  }

  void hear_first(State state, std::size_t c, std::size_t n) {
    auto& client = state.clients[c];
    if (client.first[n] != Call::done || client.step != Step::first) return;
    client.first[n] = Call::lost;  // the reply: the node holds it all the same
    visit(state);
    client.first[n] = Call::answered;
    client.counted = static_cast<std::uint8_t>(client.counted | 1U << n);
    visit(state);
  }

  void start_second(State state, std::size_t c) {
    auto& client = state.clients[c];
    if (client.step != Step::first || std::popcount(client.counted) < majority()) return;
    for (std::size_t n = 0; n < static_cast<std::size_t>(rules_.nodes); ++n) {
      if ((client.counted >> n & 1) != 0) client.fence = std::max(client.fence, client.number[n]);
    }
    if (!rules_.second_phase) return grant(state, c);
    client.step = Step::second;
    for (std::size_t n = 0; n < static_cast<std::size_t>(rules_.nodes); ++n) {
      const bool counted = (client.counted >> n & 1) != 0;
      if (rules_.skip_who_knows && counted && client.number[n] == client.fence) {
        client.second[n] = Call::answered;
        client.kept[n] = 1;
      } else if (counted || !rules_.only_counted || !rules_.only_holders) {
        client.second[n] = Call::sent;
      }
    }
    confirm(state, c);
  }

  void serve_second(State state, std::size_t c, std::size_t n) {
    auto& client = state.clients[c];
    auto& node = state.nodes[n];
    if (client.second[n] != Call::sent) return;
    client.second[n] = Call::done;
    const bool holds = node.holder == c && (node.hold == client.number[n] || !rules_.only_counted);
    client.kept[n] = holds || !rules_.only_holders ? 1 : 0;
    if (client.kept[n] != 0) node.count = std::max(node.count, client.fence);
    visit(state);
  }

  void hear_second(State state, std::size_t c, std::size_t n) {
    auto& client = state.clients[c];
    if (client.second[n] != Call::done || client.kept[n] == 0) return;
    client.second[n] = Call::answered;
    confirm(state, c);
    // That it gets lost is the same as that it is never heard.
  }

  void confirm(const State& state, std::size_t c) {
    const auto& client = state.clients[c];
    int confirmed = 0;
    for (std::size_t n = 0; n < static_cast<std::size_t>(rules_.nodes); ++n) {
      if (client.second[n] == Call::answered && client.kept[n] != 0) ++confirmed;
    }
    if (confirmed >= majority()) return grant(state, c);
    visit(state);
  }

  void grant(State state, std::size_t c) {
    auto& client = state.clients[c];
    const auto fence = client.fence;
    if (fence <= client.before)
      wrong_ = "fence " + std::to_string(fence) + " after " + std::to_string(client.before);
    for (std::size_t other = 0; other < kMostClients; ++other) {
      if (other != c && state.clients[other].step == Step::granted &&
          state.clients[other].fence == fence)
        wrong_ = "fence " + std::to_string(fence) + " twice";
    }
    client = {.step = Step::granted, .fence = fence, .before = client.before};
    visit(state);
  }

  const Rules rules_;
  std::unordered_set<std::string> seen_;
  std::vector<State> open_;
  std::string wrong_;
};

void expect_right(const Rules& rules) {
  Search search(rules);
  EXPECT_EQ(search.run(), "");
  testing::Test::RecordProperty("states", std::to_string(search.states()));
  EXPECT_GT(search.states(), 1000U) << "hardly anything was tried";
  std::cout << search.states() << " states\n";
}

void expect_wrong(const Rules& rules, const std::string& how) {
  Search search(rules);
  const auto wrong = search.run();
  EXPECT_NE(wrong.find(how), std::string::npos) << "found: '" << wrong << "'";
  std::cout << wrong << ", after " << search.states() << " states\n";
}

TEST(RedlockModel, FencesAreUniqueAndOrderedForTwoClients) { expect_right({}); }
TEST(RedlockModel, FencesAreUniqueAndOrderedForThreeClients) { expect_right({.clients = 3}); }
TEST(RedlockModel, TheySoAreWithoutTheShortcut) { expect_right({.skip_who_knows = false}); }
TEST(RedlockModel, ANodeMayLoseItsDataIfItWaitsAndIsRepaired) {
  expect_right({.losses = 1});
}

TEST(RedlockModel, WithoutASecondPhaseTheyGoBack) {
  expect_wrong({.clients = 3, .second_phase = false}, "");
}
TEST(RedlockModel, OnAnyMajorityTheyAreNotUnique) {
  expect_wrong({.only_holders = false, .skip_who_knows = false}, "twice");
}
TEST(RedlockModel, OnNodesThatDidNotCountTheyAreNotUnique) {
  expect_wrong({.clients = 3, .only_counted = false}, "");
}
TEST(RedlockModel, ANodeThatLostItsDataMustNotCountAtOnce) {
  expect_wrong({.losses = 1, .new_nodes_wait = false, .new_nodes_repaired = false}, "");
}
TEST(RedlockModel, ItMustNotCountBeforeItIsRepaired) {
  expect_wrong({.losses = 1, .new_nodes_repaired = false}, "");
}
TEST(RedlockModel, ItMustNotBeRepairedWhileGrantsAreUnderWay) {
  expect_wrong({.losses = 1, .new_nodes_wait = false}, "");
}

}  // namespace
