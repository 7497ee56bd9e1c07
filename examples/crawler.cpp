// Crawlers fetch pages, and no site may be visited by two of them at a time. Each takes the lock of a
// domain, fetches what there is to fetch from it, and goes on to a domain that is free.
// (Row 1.6 of tests/requirements.md.)
#include <interlock/interlock.hpp>

#include <atomic>
#include <deque>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store.hpp"

using namespace std::chrono_literals;

namespace {

// What is still to be fetched. In earnest: a table, or a queue service.
class Frontier {
 public:
  void add(const std::string& domain, int pages) { pages_[domain] += pages; }
  std::vector<std::string> domains() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [domain, pages] : pages_) {
      if (pages > 0) names.push_back(domain);
    }
    return names;
  }
  bool take(const std::string& domain) {
    const std::lock_guard lock(mutex_);
    return pages_[domain]-- > 0;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> pages_;
};

struct Site {
  std::atomic<int> visitors = 0;
  std::atomic<int> fetched = 0;

  void fetch() {
    expect(visitors.fetch_add(1) == 0, "one visitor at a time");
    std::this_thread::sleep_for(1ms);
    ++fetched;
    --visitors;
  }
};

}  // namespace

int main() {
  const Store store;
  Frontier frontier;
  std::map<std::string, Site> sites;
  for (const auto* domain : {"example.com", "example.net", "example.org"}) {
    frontier.add(domain, 20);
    sites[domain];
  }
  {
    std::vector<std::jthread> crawlers;
    for (int i = 1; i <= 5; ++i) {
      crawlers.emplace_back([&, i] {
        const auto locks = interlock::connect(store.url());
        for (auto open = frontier.domains(); !open.empty(); open = frontier.domains()) {
          for (const auto& domain : open) {
            const interlock::Mutex lock(locks, "domain:" + domain,
                                        {.ttl = 30s, .label = "crawler " + std::to_string(i)});
            auto lease = lock.try_acquire();
            // A few pages at a time, so that the others get their turn; and none after a loss.
            for (int page = 0; lease && *lease && page < 5 && frontier.take(domain); ++page)
              sites.at(domain).fetch();
          }
          std::this_thread::sleep_for(1ms);
        }
      });
    }
  }
  for (const auto& [domain, site] : sites) {
    std::cout << domain << ": " << site.fetched << " pages\n";
    expect(site.fetched == 20, "all pages");
  }
}
