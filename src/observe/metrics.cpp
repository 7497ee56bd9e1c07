#include "interlock/metrics.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <tuple>
#include <vector>

#include "observe/exposition.hpp"

namespace interlock {

namespace {

using Count = std::atomic<std::uint64_t>;

using Gauge = std::atomic<std::int64_t>;

void add(Count& count) noexcept { count.fetch_add(1, std::memory_order_relaxed); }
void add(Gauge& gauge, int by) noexcept { gauge.fetch_add(by, std::memory_order_relaxed); }

class Histogram {
 public:
  void record(Duration value) noexcept {
    value = std::max(value, Duration::zero());
    const auto* bucket = std::lower_bound(kBounds.begin(), kBounds.end(), value);
    add(counts_[static_cast<std::size_t>(bucket - kBounds.begin())]);
    sum_.fetch_add(value.count(), std::memory_order_relaxed);
  }

  void write(observe::Exposition& out, std::string_view store, std::string_view node,
             std::string_view group) const {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      count += counts_[i].load(std::memory_order_relaxed);
      const auto bound = i < kBounds.size() ? observe::format_number(observe::seconds(kBounds[i]))
                                            : std::string("+Inf");
      out.sample({{"store", store}, {"node", node}, {"group", group}, {"le", bound}},
                 static_cast<double>(count), "_bucket");
    }
    out.sample({{"store", store}, {"node", node}, {"group", group}},
               observe::seconds(Duration(sum_.load(std::memory_order_relaxed))), "_sum");
    out.sample({{"store", store}, {"node", node}, {"group", group}}, static_cast<double>(count),
               "_count");
  }

 private:
  static constexpr auto kBounds = [] {
    using std::chrono::milliseconds;
    // A local round trip at one end, a long job at the other.
    return std::to_array<Duration>(
        {milliseconds(1), milliseconds(5), milliseconds(10), milliseconds(25), milliseconds(50),
         milliseconds(100), milliseconds(250), milliseconds(500), milliseconds(1'000),
         milliseconds(2'500), milliseconds(5'000), milliseconds(10'000), milliseconds(30'000),
         milliseconds(60'000), milliseconds(300'000), milliseconds(900'000),
         milliseconds(3'600'000)});
  }();

  std::array<Count, kBounds.size() + 1> counts_{};
  std::atomic<Duration::rep> sum_{0};
};

enum class Ended : std::uint8_t { granted, busy, timed_out, exhausted, cancelled, refused, count };
constexpr std::array<std::string_view, static_cast<std::size_t>(Ended::count)> kEnded = {
    "granted", "busy", "timed_out", "exhausted", "cancelled", "refused"};

Ended ended(const Observation& seen) noexcept {
  if (seen.event == Event::granted) return Ended::granted;
  if (seen.event == Event::refused) return Ended::refused;
  switch (seen.error == nullptr ? Errc::timed_out : seen.error->errc()) {
    case Errc::busy:
      return Ended::busy;
    case Errc::exhausted:
      return Ended::exhausted;
    case Errc::cancelled:
      return Ended::cancelled;
    default:
      return Ended::timed_out;
  }
}

}  // namespace

/// What is counted for each store and group. Series are added and never taken away, so those who
/// count find theirs without a lock.
class Metrics::Table {
 public:
  struct Series {
    Series(const Traits& of_store, std::string_view of_group)
        : store(of_store.name), node(of_store.where), group(of_group) {}
    [[nodiscard]] bool counts(const Traits& of_store, std::string_view of_group) const {
      return group == of_group && node == of_store.where && store == of_store.name;
    }
    const std::string store;
    const std::string node;
    const std::string group;
    std::atomic<bool> of_locks{false};  // else of the store alone
    std::array<Count, kEnded.size()> acquisitions{};
    Histogram wait{};
    Histogram hold{};
    Gauge waiting{0};
    Gauge held{0};
    Count lost{0};
    Count renewals{0};
    Count renewal_failures{0};
    Count release_failures{0};
    Count disconnects{0};
    Count reconnects{0};
  };

  Series& series(const Traits& store, std::string_view group) {
    for (auto i = std::hash<std::string_view>{}(group);; ++i) {
      auto& slot = slots_[i % slots_.size()];
      auto* found = slot.load(std::memory_order_acquire);
      if (found == nullptr) {
        if (full_ && group != kOther) return series(store, kOther);
        return add_series(store, group);
      }
      if (found->counts(store, group)) return *found;
    }
  }

  /// Sorted by store, node and group.
  [[nodiscard]] std::vector<const Series*> all() const {
    std::vector<const Series*> found;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& each : owned_) found.push_back(each.get());
    }
    std::sort(found.begin(), found.end(), [](const Series* a, const Series* b) {
      return std::tie(a->store, a->node, a->group) < std::tie(b->store, b->node, b->group);
    });
    return found;
  }

 private:
  Series& add_series(const Traits& store, std::string_view group) {
    const std::lock_guard lock(mutex_);
    const auto known = [&] {
      return std::find_if(owned_.begin(), owned_.end(),
                          [&](const auto& each) { return each->counts(store, group); });
    };
    auto found = known();  // another one may have been quicker
    if (found == owned_.end() && owned_.size() >= kMostGroups) {
      full_ = true;
      group = kOther;
      found = known();
      // One for each store; beyond any reason, they share the last one.
      if (found == owned_.end() && owned_.size() == owned_.capacity()) found = owned_.end() - 1;
    }
    if (found != owned_.end()) return **found;
    owned_.push_back(std::make_unique<Series>(store, group));
    for (auto i = std::hash<std::string_view>{}(group);; ++i) {
      Series* nobody = nullptr;
      if (slots_[i % slots_.size()].compare_exchange_strong(nobody, owned_.back().get(),
                                                            std::memory_order_release)) {
        return *owned_.back();
      }
    }
  }

  static constexpr std::string_view kOther = "other";

  static std::vector<std::unique_ptr<Series>> room() {
    std::vector<std::unique_ptr<Series>> series;
    series.reserve(kMostGroups + 16);
    return series;
  }

  // Never full: a search ends at the first empty slot.
  std::array<std::atomic<Series*>, 256> slots_{};
  std::atomic<bool> full_{false};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Series>> owned_ = room();
};

Metrics::Metrics(MetricsOptions options)
    : options_(std::move(options)), table_(std::make_unique<Table>()) {}

Metrics::~Metrics() = default;

void Metrics::on(const Observation& seen) noexcept {
  try {
    auto& series = table_->series(*seen.store, options_.group && !seen.resource.empty()
                                                   ? options_.group(seen.resource)
                                                   : std::string());
    if ((!options_.group || !seen.resource.empty()) &&
        !series.of_locks.load(std::memory_order_relaxed)) {
      series.of_locks.store(true, std::memory_order_relaxed);
    }
    const bool begins = seen.claim.instead_of.empty();  // else a lease changes its mode
    switch (seen.event) {
      case Event::asked:
        add(series.waiting, 1);
        break;
      case Event::granted:
        series.wait.record(seen.elapsed);
        if (begins) add(series.held, 1);
        [[fallthrough]];
      case Event::timed_out:
      case Event::refused:
        add(series.waiting, -1);
        add(series.acquisitions[static_cast<std::size_t>(ended(seen))]);
        break;
      case Event::adopted:
        add(series.held, 1);
        break;
      case Event::lost:
        add(series.lost);
        add(series.held, -1);
        series.hold.record(seen.elapsed);
        break;
      case Event::release_failed:
        add(series.release_failures);
        [[fallthrough]];
      case Event::released:
      case Event::detached:
        add(series.held, -1);
        series.hold.record(seen.elapsed);
        break;
      case Event::renewed:
        add(series.renewals);
        break;
      case Event::renewal_failed:
        add(series.renewal_failures);
        break;
      case Event::store_down:
        add(series.disconnects);
        break;
      case Event::store_back:
        add(series.reconnects);
        break;
      case Event::opened:
      case Event::queued:
      case Event::cleanup_failed:
      case Event::warned:
      case Event::found:
        break;
    }
  } catch (...) {  // a number is not worth a lock
  }
}

std::string Metrics::text() const {
  observe::Exposition out;
  const auto everything = table_->all();
  auto all = everything;
  std::erase_if(all, [](const auto* series) { return !series->of_locks.load(); });
  const auto each = [&](const auto& value) {
    for (const auto* series : all) {
      out.sample({{"store", series->store}, {"node", series->node}, {"group", series->group}},
                 static_cast<double>(value(*series).load(std::memory_order_relaxed)));
    }
  };
  using Series = Table::Series;
  out.family("interlock_acquisitions_total", "counter", "Acquisitions that ended, by outcome.");
  for (const auto* series : all) {
    for (std::size_t i = 0; i < kEnded.size(); ++i) {
      out.sample({{"store", series->store},
                  {"node", series->node},
                  {"group", series->group},
                  {"outcome", kEnded[i]}},
                 static_cast<double>(series->acquisitions[i].load(std::memory_order_relaxed)));
    }
  }
  out.family("interlock_wait_seconds", "histogram", "From asking for a lock to having it.");
  for (const auto* series : all)
    series->wait.write(out, series->store, series->node, series->group);
  out.family("interlock_hold_seconds", "histogram", "From having a lock to the end of its lease.");
  for (const auto* series : all)
    series->hold.write(out, series->store, series->node, series->group);
  out.family("interlock_waiting", "gauge", "Acquisitions under way.");
  each([](const Series& s) -> auto& { return s.waiting; });
  out.family("interlock_held", "gauge", "Leases held.");
  each([](const Series& s) -> auto& { return s.held; });
  out.family("interlock_lost_total", "counter", "Leases that ended before their time.");
  each([](const Series& s) -> auto& { return s.lost; });
  out.family("interlock_renewals_total", "counter", "Renewals that worked.");
  each([](const Series& s) -> auto& { return s.renewals; });
  out.family("interlock_renewal_failures_total", "counter", "Renewals without an answer.");
  each([](const Series& s) -> auto& { return s.renewal_failures; });
  out.family("interlock_release_failures_total", "counter", "Releases that were not confirmed.");
  each([](const Series& s) -> auto& { return s.release_failures; });

  const auto each_store = [&](const auto& value) {
    for (auto first = everything.begin(); first != everything.end();) {
      const auto& [store, node] = std::tie((*first)->store, (*first)->node);
      std::uint64_t sum = 0;
      for (; first != everything.end() && (*first)->store == store && (*first)->node == node;
           ++first) {
        sum += value(**first).load(std::memory_order_relaxed);
      }
      out.sample({{"store", store}, {"node", node}}, static_cast<double>(sum));
    }
  };
  out.family("interlock_disconnects_total", "counter", "Times that the store stopped answering.");
  each_store([](const Series& s) -> auto& { return s.disconnects; });
  out.family("interlock_reconnects_total", "counter", "Times that the store answered again.");
  each_store([](const Series& s) -> auto& { return s.reconnects; });
  return std::move(out.text());
}

}  // namespace interlock
