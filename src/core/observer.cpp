#include "interlock/observer.hpp"

namespace interlock {

namespace {

class Several final : public Observer {
 public:
  explicit Several(std::vector<std::shared_ptr<Observer>> all) : all_(std::move(all)) {}
  void on(const Observation& observation) noexcept override {
    for (const auto& each : all_) each->on(observation);
  }

 private:
  const std::vector<std::shared_ptr<Observer>> all_;
};

}  // namespace

std::shared_ptr<Observer> observers(std::vector<std::shared_ptr<Observer>> all) {
  std::erase(all, nullptr);
  if (all.empty()) return nullptr;
  if (all.size() == 1) return std::move(all.front());
  return std::make_shared<Several>(std::move(all));
}

std::string_view to_string(Event event) noexcept {
  switch (event) {
    case Event::opened:
      return "opened";
    case Event::asked:
      return "asked";
    case Event::queued:
      return "queued";
    case Event::granted:
      return "granted";
    case Event::timed_out:
      return "timed_out";
    case Event::refused:
      return "refused";
    case Event::adopted:
      return "adopted";
    case Event::renewed:
      return "renewed";
    case Event::renewal_failed:
      return "renewal_failed";
    case Event::lost:
      return "lost";
    case Event::released:
      return "released";
    case Event::release_failed:
      return "release_failed";
    case Event::detached:
      return "detached";
    case Event::cleanup_failed:
      return "cleanup_failed";
    case Event::store_down:
      return "store_down";
    case Event::store_back:
      return "store_back";
    case Event::warned:
      return "warned";
    case Event::found:
      return "found";
  }
  return "?";
}

}  // namespace interlock
