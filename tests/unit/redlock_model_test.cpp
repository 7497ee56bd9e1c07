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
#include <bit>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <unordered_set>
#include <vector>

namespace {

struct Rules {
  int nodes = 3;
  int clients = 2;
  bool second_phase = true;        ///< else the fence is what phase one says
  bool only_holders = true;        ///< phase two needs the hold of phase one
  bool only_counted = true;        ///< phase two needs that phase one's answer counted
  bool skip_who_knows = true;      ///< a node that gave out the fence itself needs no phase two
  int losses = 0;                  ///< so many nodes may lose their data, each once
  bool new_nodes_wait = true;      ///< until grants that are under way have ended
  bool new_nodes_repaired = true;  ///< from a majority that counts
  bool check_unique = true;
  bool check_order = true;
};

constexpr int kMostNodes = 5;
constexpr int kMostClients = 3;
constexpr std::uint8_t kNobody = 0xff;
constexpr std::uint8_t kSomebody = 0xfe;  ///< a client that has ended and left its hold behind

struct Node {
  std::uint8_t holder = kNobody;
  std::uint8_t hold = 0;  ///< the number of the present hold
  std::uint8_t count = 0;
  std::uint8_t fresh = 0;  ///< lost its data and does not count yet
  std::uint8_t lost = 0;   ///< so often
};

enum class Step : std::uint8_t { idle, first, second, granted, failed };
/// What became of one request to one node. That a reply is on its way needs no state of its own:
/// late is as good as lost, and what the client makes of it may come at any time anyway.
enum class Call : std::uint8_t { none, sent, heard, lost };

struct Client {
  Step step = Step::idle;
  std::uint8_t fence = 0;
  std::uint8_t before = 0;  ///< the largest fence that was granted when it began
  std::array<Call, kMostNodes> first{};
  std::array<std::uint8_t, kMostNodes> number{};  ///< phase one's
  std::uint8_t counted = 0;                       ///< nodes whose first answer counted
  std::array<Call, kMostNodes> second{};

  [[nodiscard]] bool ended() const { return step == Step::granted || step == Step::failed; }
};

struct State {
  std::array<Node, kMostNodes> nodes{};
  std::array<Client, kMostClients> clients{};
};

// All members are bytes: no padding, and equal states are equal bytes.
static_assert(sizeof(Client) == 4 + 3 * std::size_t{kMostNodes});
static_assert(sizeof(State) == 5 * std::size_t{kMostNodes} + sizeof(Client) * kMostClients);

/// 128 bits of a state: enough that no two of some millions are taken for one.
struct Key {
  std::uint64_t a = 0x9e3779b97f4a7c15;
  std::uint64_t b = 0xc2b2ae3d27d4eb4f;

  explicit Key(const State& state) {
    std::array<std::uint64_t, (sizeof(State) + 7) / 8> words{};
    std::memcpy(words.data(), &state, sizeof(State));
    for (const auto word : words) {
      a = (a ^ word) * 0xff51afd7ed558ccd;
      a ^= a >> 32U;
      b = (b + word) * 0xc4ceb9fe1a85ec53;
      b ^= b >> 29U;
    }
  }
  bool operator==(const Key&) const = default;
  struct Hash {
    std::size_t operator()(const Key& key) const { return key.a; }
  };
};

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

  // States that differ only in which client or node is which are one: clients are sorted by what
  // they did, and then nodes by what happened there.
  [[nodiscard]] State canonical(State state) const {
    using Traits = std::array<std::uint8_t, 4 + kMostNodes>;
    std::array<std::pair<Traits, std::uint8_t>, kMostClients> order{};
    for (std::size_t c = 0; c < kMostClients; ++c) {
      const auto& client = state.clients[c];
      Traits traits{static_cast<std::uint8_t>(client.step == Step::idle), client.fence,
                    client.before, static_cast<std::uint8_t>(client.step)};
      for (std::size_t n = 0; n < kMostNodes; ++n) {
        traits[4 + n] = static_cast<std::uint8_t>(static_cast<unsigned>(client.number[n]) << 4U |
                                                  static_cast<unsigned>(client.first[n]) << 2U |
                                                  static_cast<unsigned>(client.second[n]));
      }
      sort_small(traits, 4, kMostNodes);
      order[c] = {traits, static_cast<std::uint8_t>(c)};
    }
    sort_small(order, 0, static_cast<std::size_t>(rules_.clients));
    const auto before = state;
    for (std::size_t c = 0; c < kMostClients; ++c) {
      state.clients[c] = before.clients[order[c].second];
      for (std::size_t n = 0; n < kMostNodes; ++n) {
        if (before.nodes[n].holder == order[c].second)
          state.nodes[n].holder = static_cast<std::uint8_t>(c);
      }
    }
    struct Column {
      Node node;
      std::array<std::array<std::uint8_t, 4>, kMostClients> calls;
      bool operator<(const Column& other) const {
        return std::memcmp(this, &other, sizeof(Column)) < 0;
      }
    };
    std::array<Column, kMostNodes> columns{};
    for (std::size_t n = 0; n < columns.size(); ++n) {
      columns[n].node = state.nodes[n];
      for (std::size_t c = 0; c < kMostClients; ++c) {
        const auto& client = state.clients[c];
        columns[n].calls[c] = {static_cast<std::uint8_t>(client.first[n]), client.number[n],
                               static_cast<std::uint8_t>(client.second[n]),
                               static_cast<std::uint8_t>(client.counted >> n & 1)};
      }
    }
    sort_small(columns, 0, static_cast<std::size_t>(rules_.nodes));
    for (auto& client : state.clients) client.counted = 0;
    for (std::size_t n = 0; n < columns.size(); ++n) {
      state.nodes[n] = columns[n].node;
      for (std::size_t c = 0; c < kMostClients; ++c) {
        auto& client = state.clients[c];
        const auto& calls = columns[n].calls[c];
        client.first[n] = static_cast<Call>(calls[0]);
        client.number[n] = calls[1];
        client.second[n] = static_cast<Call>(calls[2]);
        client.counted = static_cast<std::uint8_t>(client.counted | calls[3] << n);
      }
    }
    return state;
  }

  template <class Array>
  static void sort_small(Array& array, std::size_t from, std::size_t count) {
    for (std::size_t i = 1; i < count; ++i) {
      for (auto at = from + i; at > from && array[at] < array[at - 1]; --at)
        std::swap(array[at], array[at - 1]);
    }
  }

  void visit(const State& state) {
    if (!wrong_.empty()) return;
    const State same = canonical(state);
    if (seen_.insert(Key(same)).second) open_.push_back(same);
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
        serve_second(state, c, n);
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
        if (under_way && (client.first[n] == Call::heard || client.first[n] == Call::lost)) return;
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
    end(state, c, {.step = Step::failed});
    visit(state);
  }

  void serve_first(State state, std::size_t c, std::size_t n) {
    auto& client = state.clients[c];
    auto& node = state.nodes[n];
    if (client.first[n] != Call::sent || node.fresh != 0 || node.holder != kNobody) return;
    node.holder = static_cast<std::uint8_t>(c);
    node.hold = ++node.count;
    client.first[n] = Call::lost;  // the reply: the node holds it all the same
    if (!rules_.only_counted) client.number[n] = node.hold;
    visit(state);
    if (client.step != Step::first) return;  // too late to count
    client.first[n] = Call::heard;
    client.number[n] = node.hold;
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
        client.second[n] = Call::heard;
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
    const bool holds = node.holder == c && (node.hold == client.number[n] || !rules_.only_counted);
    client.second[n] = Call::lost;
    if (!holds && rules_.only_holders) return visit(state);
    node.count = std::max(node.count, client.fence);
    visit(state);
    client.second[n] = Call::heard;
    confirm(state, c);
  }

  // Its holds are not released; they expire at any time, or never.
  static void end(State& state, std::size_t c, const Client& as) {
    state.clients[c] = as;
    for (auto& node : state.nodes) {
      if (node.holder == c) node.holder = kSomebody;
    }
  }

  void confirm(const State& state, std::size_t c) {
    const auto& client = state.clients[c];
    int confirmed = 0;
    for (std::size_t n = 0; n < static_cast<std::size_t>(rules_.nodes); ++n) {
      if (client.second[n] == Call::heard) ++confirmed;
    }
    if (confirmed >= majority()) return grant(state, c);
    visit(state);
  }

  void grant(State state, std::size_t c) {
    auto& client = state.clients[c];
    const auto fence = client.fence;
    if (rules_.check_order && fence <= client.before)
      wrong_ = "fence " + std::to_string(fence) + " after " + std::to_string(client.before);
    for (std::size_t other = 0; other < kMostClients; ++other) {
      if (rules_.check_unique && other != c && state.clients[other].step == Step::granted &&
          state.clients[other].fence == fence)
        wrong_ = "fence " + std::to_string(fence) + " twice";
    }
    end(state, c, {.step = Step::granted, .fence = fence});
    visit(state);
  }

  const Rules rules_;
  std::unordered_set<Key, Key::Hash> seen_;
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
  ASSERT_NE(wrong, "") << "nothing was found in " << search.states() << " states";
  EXPECT_NE(wrong.find(how), std::string::npos) << wrong;
  std::cout << wrong << ", after " << search.states() << " states\n";
}

TEST(RedlockModel, FencesAreUniqueAndOrderedForTwoClients) { expect_right({}); }
TEST(RedlockModel, FencesAreUniqueAndOrderedForThreeClients) { expect_right({.clients = 3}); }
TEST(RedlockModel, TheySoAreOnFiveNodes) { expect_right({.nodes = 5}); }
TEST(RedlockModel, TheySoAreWithoutTheShortcut) { expect_right({.skip_who_knows = false}); }
TEST(RedlockModel, ANodeMayLoseItsDataIfItWaitsAndIsRepaired) { expect_right({.losses = 1}); }

TEST(RedlockModel, WithoutASecondPhaseTheyGoBack) {
  expect_wrong({.clients = 3, .second_phase = false, .check_unique = false}, "after");
}
TEST(RedlockModel, OnAnyMajorityTheyAreOrderedButNotUnique) {
  const Rules any{.only_holders = false, .skip_who_knows = false};
  expect_wrong(any, "twice");
  auto ordered = any;
  ordered.check_unique = false;
  expect_right(ordered);
}
TEST(RedlockModel, OnNodesThatDidNotCountTheyAreNotUnique) {
  expect_wrong({.clients = 3, .only_counted = false}, "twice");
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
