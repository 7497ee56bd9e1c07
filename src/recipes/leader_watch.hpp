// Looks at the store, again and again, for those who want to know who leads.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "interlock/leader_election.hpp"

namespace interlock::recipes {

/// Who holds the resource now. Throws Error (unreachable).
std::optional<Leader> look_at_leader(const Client& client, const std::string& resource);

/// On a thread of its own, which starts with the first onlooker: a look may have to wait for the store.
class LeaderWatch {
 public:
  using Changed = std::function<void(const std::optional<Leader>&)>;
  /// Runs what has to be told, somewhere else.
  using Post = std::function<void(std::function<void()>)>;

  LeaderWatch(Client client, std::string resource, Duration every, Post post)
      : client_(std::move(client)),
        resource_(std::move(resource)),
        every_(std::clamp<Duration>(every, std::chrono::milliseconds(1), std::chrono::hours(24))),
        post_(std::move(post)) {}
  LeaderWatch(const LeaderWatch&) = delete;
  LeaderWatch& operator=(const LeaderWatch&) = delete;
  ~LeaderWatch() { stop(); }

  void add(Changed changed);
  /// Something may have changed.
  void hurry();
  /// Nothing is posted after this. Waits for the end of a look.
  void stop();

 private:
  struct Onlooker {
    Changed changed;
    bool told = false;
    std::optional<Leader> last{};
  };

  void run();
  void tell(const std::optional<Leader>& found);

  const Client client_;
  const std::string resource_;
  const Duration every_;
  const Post post_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hurried_ = false;
  bool stop_ = false;
  std::vector<Onlooker> onlookers_;
  std::thread thread_;
};

}  // namespace interlock::recipes
