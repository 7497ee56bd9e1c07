#include <algorithm>
#include <array>
#include <set>

#include "checks/checks.hpp"
#include "checks/presence.hpp"

namespace torture::checks {

namespace {

/// What may be told to whom.
const std::map<std::string, std::set<std::string>>& answers_of_forms() {
  static const std::map<std::string, std::set<std::string>> answers{
      {"wait", {"granted", "cancelled", "failed"}},
      {"once", {"granted", "busy", "failed"}},
      {"bounded", {"granted", "timed_out", "cancelled", "failed"}},
      {"tries", {"granted", "exhausted", "cancelled", "failed"}},
  };
  return answers;
}

const std::map<std::string, std::set<std::string>>& answers_of_verbs() {
  static const std::map<std::string, std::set<std::string>> answers{
      {"extend", {"yes", "no", "lost", "failed"}},
      {"release", {"released", "lost", "failed"}},
      {"partial", {"released", "held", "lost", "failed"}},
      {"downgrade", {"yes", "no", "lost", "failed"}},
      {"upgrade", {"yes", "no", "lost", "failed"}},
      {"upgrade_for", {"yes", "no", "lost", "failed", "cancelled"}},
      {"detach", {"yes", "lost", "failed"}},
      {"adopt", {"yes", "lost", "failed"}},
      {"tie", {"yes", "no", "lost", "failed"}},
      {"break", {"yes", "no", "failed"}},
      {"drop", {"yes"}},
      {"unlock", {"yes", "lost", "failed"}},
      {"fork", {"yes", "failed"}},
  };
  return answers;
}

class Judge {
 public:
  Judge(const Index& index, Finding& finding)
      : index_(index), finding_(finding), presences_(index) {}

  void look_at(const Call& call) {
    ++finding_.looked_at;
    if (!is_possible(call)) {
      return add(call,
                 "was answered with \"" + call.answer + "\", which its kind of call never is");
    }
    if (call.answer == "timed_out") timed_out(call);
    if (call.answer == "cancelled" && (call.cancel == nullptr || call.cancel->t > call.to())) {
      add(call, "was told that it was cancelled, and nobody had cancelled it");
    }
    if (call.answer == "failed") failed(call);
    const bool upgrade = call.verb.starts_with("upgrade") && call.answer == "no";
    if (call.answer == "busy" || call.answer == "exhausted" || call.answer == "timed_out" ||
        upgrade) {
      taken(call);
    }
  }

 private:
  static bool is_possible(const Call& call) {
    const auto& table = call.acquires() ? answers_of_forms() : answers_of_verbs();
    const auto row = table.find(call.acquires() ? call.form : call.verb);
    return row == table.end() || row->second.contains(call.answer);
  }

  void timed_out(const Call& call) {
    const auto took = call.to() - call.from();
    if (!call.limit || took >= *call.limit - index_.tolerances().early) return;
    add(call, "timed out after " + text_of(took) + ", before its limit of " + text_of(*call.limit));
  }

  void failed(const Call& call) {
    static const std::set<std::string> disturbances{"unreachable", "refused", "corrupt"};
    if (disturbances.contains(call.errc)) {
      if (index_.disturbed(call.from(), call.to()) != nullptr) return;
      if (index_.stalled(call.worker, call.from(), call.to(), index_.tolerances().long_stall) ||
          index_.stalled("", call.from(), call.to()))
        return;
      // The round gives calls so little time that a busy machine is too slow for them now and then.
      if (index_.timeout() > 0 && call.errc == "unreachable" &&
          call.to() - call.from() >= index_.timeout() - index_.tolerances().early)
        return;
      return add(call, "was told \"" + call.errc + "\", and nothing disturbed the store");
    }
    if (!may_fail_with(call)) add(call, "failed with \"" + call.errc + "\"");
  }

  [[nodiscard]] bool may_fail_with(const Call& call) const {
    if (call.errc == "forked") return call.verb == "fork";
    // A lease is lost for a reason: that is another check's.
    if (call.errc == "lost") return !call.acquires() || broken_meanwhile(call);
    if (call.errc == "unsupported") {
      return !call.acquires() || std::any_of(call.parts.begin(), call.parts.end(),
                                             [](auto& part) { return part.mode == Mode::slots; });
    }
    // A circle needs a lease of the one who waits.
    if (call.errc == "deadlock") return holds_something(call);
    return false;
  }

  /// What a call was granted may have been broken before the call knew of it.
  [[nodiscard]] bool broken_meanwhile(const Call& call) const {
    const auto breaks = index_.of_kind("breaks");
    return std::any_of(breaks.begin(), breaks.end(), [&](const Event* event) {
      return event->t >= call.from() && event->t <= call.to() &&
             std::any_of(call.parts.begin(), call.parts.end(),
                         [&](const Part& part) { return part.r == text(*event, "r"); });
    });
  }

  [[nodiscard]] bool holds_something(const Call& call) const {
    for (const auto& [resource, beliefs] : index_.beliefs()) {
      for (const auto& belief : beliefs) {
        if (belief.worker == call.worker && belief.from < call.to() && belief.to > call.from()) {
          return true;
        }
      }
    }
    return false;
  }

  void taken(const Call& call) {
    if (index_.brought_back(call.to())) return;
    const bool by_limit = call.answer == "timed_out" || call.verb == "upgrade_for";
    if (by_limit && call.limit && *call.limit < index_.tolerances().fair_chance) return;
    // An upgrade settles first what an earlier call has left in doubt, which may take all of its limit.
    if (call.verb == "upgrade_for" && index_.disturbed(call.from(), call.to()) != nullptr) return;
    if (presences_.rival(call, call.from(), call.to()) != nullptr) return;
    // An upgrade of a lease that is lost is refused as well.
    if (!call.acquires()) {
      const auto lease = index_.leases().find(call.lease);
      if (lease == index_.leases().end() || !lease->second.lost.empty() ||
          lease->second.until < call.to()) {
        return;
      }
    }
    add(call, "was told \"" + call.answer +
                  "\", and nobody can have held or waited for what it asked for");
  }

  void add(const Call& call, const std::string& what) {
    std::vector<const Event*> events{call.ask, call.told};
    if (call.cancel != nullptr) events.push_back(call.cancel);
    finding_.violations.push_back({"the " + call.verb + " " + call.op +
                                       (call.form.empty() ? "" : " (" + call.form + ")") + " " +
                                       what,
                                   part_of(std::move(events))});
  }

  const Index& index_;
  Finding& finding_;
  Presences presences_;
};

}  // namespace

Finding answers(const Index& index) {
  Finding finding{.name = "answers"};
  Judge judge(index, finding);
  for (const auto& call : index.calls()) {
    if (call.told != nullptr) judge.look_at(call);
  }
  return finding;
}

}  // namespace torture::checks
