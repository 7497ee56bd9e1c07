// What stands in the keys of etcd: JSON, that anybody with the right to write there may have written.
#include "backends/etcd/record.hpp"
#include "fuzz.hpp"

void fuzz::run(std::string_view input) {
  namespace etcd = interlock::etcd;
  constexpr interlock::TimePoint kNow{std::chrono::hours(24 * 3650)};
  const auto value = accepted([&] { return etcd::decode(input, kNow, "interlock/name\thx"); });
  if (!value) return;
  require(value->ttl >= interlock::Duration::zero(), "no TTL is negative");
  require(value->record.since <= kNow, "nobody holds since tomorrow");
  require(value->record.who != nullptr, "a record says who");
  const auto text = etcd::encode(*value, kNow);
  const auto again = accepted([&] { return etcd::decode(text, kNow, "interlock/name\thx"); });
  require(again.has_value(), "what was read and written can be read: " + text);
  const auto& a = value->record;
  const auto& b = again->record;
  require(a.owner == b.owner && a.mode == b.mode && a.priority == b.priority &&
              a.fence == b.fence && a.ancestor == b.ancestor && *a.who == *b.who &&
              again->ttl == value->ttl && again->stronger == value->stronger,
          "it says the same: " + text);
  require(a.mode != interlock::Mode::slots || (a.slots == b.slots && a.capacity == b.capacity),
          "it has the same slots: " + text);
}
