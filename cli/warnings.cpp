#include "warnings.hpp"

#include <mutex>
#include <set>
#include <string>

#include "command.hpp"

namespace cli {

namespace {

class Warnings final : public interlock::Observer {
 public:
  void on(const interlock::Observation& seen) noexcept override {
    if (seen.event != interlock::Event::warned || seen.error == nullptr) return;
    try {
      auto text = seen.error->message();
      const auto& node = seen.error->node();
      if (!node.empty() && node != seen.store->where) text += " [" + node + "]";
      {
        const std::lock_guard lock(mutex_);
        if (!told_.insert(text).second) return;
      }
      // It may be the thread that renews the leases.
      complain("warning: " + text, std::chrono::milliseconds(0));
    } catch (...) {  // never worth a lock
    }
  }

 private:
  std::mutex mutex_;
  std::set<std::string> told_;
};

}  // namespace

std::shared_ptr<interlock::Observer> make_warnings() { return std::make_shared<Warnings>(); }

}  // namespace cli
