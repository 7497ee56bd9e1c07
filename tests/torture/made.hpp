// A history that is written by hand, for the checks to judge. Times are milliseconds.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "checks/checks.hpp"

namespace torture::made {

constexpr std::int64_t kMs = checks::kMillisecond;

inline Json exclusive(const std::string& r) {
  return {{"r", r}, {"m", "exclusive"}, {"n", 1}, {"c", 0}};
}
inline Json shared(const std::string& r) { return {{"r", r}, {"m", "shared"}, {"n", 1}, {"c", 0}}; }
inline Json slots(const std::string& r, int n, int c) {
  return {{"r", r}, {"m", "slots"}, {"n", n}, {"c", c}};
}

/// Not the defaults: those change with what machines and stores turn out to need.
inline checks::Tolerances tolerances() {
  checks::Tolerances exact;
  exact.grace = 10'000 * kMs;
  exact.early = 5 * kMs;
  exact.bound = 6'000 * kMs;
  exact.longest_call = 60'000 * kMs;
  exact.forgotten = 60'000 * kMs;
  exact.cleaned_up = 2'000 * kMs;
  exact.order_asked = 1'000 * kMs;
  exact.order_granted = 250 * kMs;
  exact.long_stall = 1'000 * kMs;
  exact.more_threads = 8;
  exact.more_descriptors = 8;
  exact.more_memory = 32 << 20;
  exact.most_cpu = 0.05;
  return exact;
}

class History {
 public:
  History& add(std::int64_t ms, const std::string& worker, const std::string& kind,
               Json fields = Json::object()) {
    Event event;
    event.t = ms * kMs;
    event.k = kind;
    event.worker = worker;
    event.fields = std::move(fields);
    events_.push_back(std::move(event));
    return *this;
  }

  /// The call `op` for one part. Its worker is what stands before the slash.
  History& ask(std::int64_t ms, const std::string& op, const Json& part,
               Json more = Json::object()) {
    Json fields{{"op", op},       {"verb", "acquire"}, {"via", "call"},
                {"form", "wait"}, {"ttl", 3000 * kMs}, {"parts", Json::array({part})}};
    fields.update(more);
    return add(ms, worker_of(op), "ask", fields);
  }
  History& told(std::int64_t ms, const std::string& op, const std::string& answer,
                Json more = Json::object()) {
    more["op"] = op;
    more["answer"] = answer;
    return add(ms, worker_of(op), "told", more);
  }
  History& failed(std::int64_t ms, const std::string& op, const std::string& errc) {
    return told(ms, op, "failed", {{"errc", errc}});
  }
  /// The lease has the name of the call.
  History& holds(std::int64_t ms, const std::string& op, Json part, std::int64_t until,
                 int fence = 0, const Json& more = Json::object()) {
    part.update({{"op", op},
                 {"lease", op},
                 {"owner", "owner of " + op},
                 {"asked", asked(op, ms)},
                 {"adopted", false},
                 {"identity", ""},
                 {"until", until * kMs}});
    if (fence > 0) part["fence"] = fence;
    part.update(more);
    return add(ms, worker_of(op), "holds", part);
  }
  /// Asked, granted at once, held until `to`, and released.
  History& held(std::int64_t from, std::int64_t to, const std::string& op, const Json& part,
                int fence = 0, const Json& asked = Json::object(),
                const Json& more = Json::object()) {
    ask(from - 2, op, part, asked)
        .told(from - 1, op, "granted")
        .holds(from, op, part, to + 100, fence, more);
    return leaves(to, op, part.at("r")).release(to, op);
  }
  History& leaves(std::int64_t ms, const std::string& lease, const std::string& r) {
    return add(ms, worker_of(lease), "leaves", {{"lease", lease}, {"r", r}});
  }
  History& verb(std::int64_t ms, const std::string& op, const std::string& verb,
                const std::string& lease, Json more = Json::object()) {
    more.update({{"op", op}, {"verb", verb}, {"via", "call"}, {"lease", lease}});
    return add(ms, worker_of(op), "ask", std::move(more));
  }
  History& release(std::int64_t ms, const std::string& lease,
                   const std::string& answer = "released") {
    return verb(ms, lease + "r", "release", lease).told(ms + 1, lease + "r", answer);
  }
  History& fault(std::int64_t from, std::int64_t to, bool voids, bool disturbs = true,
                 bool brings_back = false) {
    add(from, "", "fault",
        {{"n", ++faults_},
         {"name", "restart"},
         {"voids", voids},
         {"disturbs", disturbs},
         {"brings_back", brings_back}});
    return add(to, "", "healed", {{"n", faults_}});
  }

  /// In the order of time.
  [[nodiscard]] std::vector<Event> events() const {
    auto sorted = events_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Event& a, const Event& b) { return a.t < b.t; });
    return sorted;
  }
  [[nodiscard]] checks::Finding judged_by(checks::Finding (*check)(const checks::Index&)) const {
    const auto all = events();
    return check(checks::Index(all, tolerances()));
  }

 private:
  static std::string worker_of(const std::string& op) { return op.substr(0, op.find('/')); }

  [[nodiscard]] std::int64_t asked(const std::string& op, std::int64_t otherwise) const {
    for (const auto& event : events_) {
      if (event.k == "ask" && event.fields.at("op") == op) return event.t;
    }
    return otherwise * kMs;
  }

  std::vector<Event> events_;
  int faults_ = 0;
};

}  // namespace torture::made
