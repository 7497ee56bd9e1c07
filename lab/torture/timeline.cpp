#include "timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "interlock/duration.hpp"
#include "svg.hpp"

namespace torture {

namespace {

using checks::Belief;
using checks::Call;
using checks::Index;
using checks::kNever;

constexpr double kLeft = 110;
constexpr double kTop = 84;
constexpr double kWidth = 1100;  // of the rows
constexpr double kRow = 22;
constexpr double kBar = 16;

std::string colour_of(std::size_t resource) {
  constexpr std::array kColours{"#3b7dd8", "#d8823b", "#4aa564", "#b9529f", "#8c6d46",
                                "#3ba7a7", "#8a63d2", "#a8a032", "#c75b5b", "#5f7f95"};
  return kColours.at(resource % kColours.size());
}

/// A hand of a worker, or what happened to the worker itself.
using Place = std::pair<std::string, std::int64_t>;

class Picture {
 public:
  Picture(const Index& index, std::int64_t from, std::int64_t to, const checks::Violation& shown)
      : index_(index), from_(from), to_(std::max(to, from + 1)), subtitle_(shown.text) {
    for (const auto& event : shown.events) framed_.insert({event.t, event.k, event.worker});
    text_.precision(6);
    collect();
  }

  std::string draw() {
    const double bottom = kTop + kRow * static_cast<double>(rows_.size());
    const double height = bottom + 74;
    text_ << R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" << kLeft + kWidth + 16
          << "\" height=\"" << height << "\" viewBox=\"0 0 " << kLeft + kWidth + 16 << ' ' << height
          << "\" font-family=\"sans-serif\" font-size=\"12\">\n<style>\n"
             "  .paper { fill: #fff } .ink { fill: #222 } .line { stroke: #ddd }\n"
             "  .wait { fill: #999 } .stopped { fill: #888; opacity: .35 }\n"
             "  .fault { fill: #fc6; opacity: .3 } .framed { stroke: #c00; stroke-width: 2 }\n"
             "  .killed, .lost { stroke: #c00; stroke-width: 2 } .lost { stroke: #a0c }\n"
             "  @media (prefers-color-scheme: dark) {\n"
             "    .paper { fill: #181a1b } .ink { fill: #ddd } .line { stroke: #3a3d3f }\n"
             "    .wait { fill: #777 } .killed, .framed { stroke: #f55 } .lost { stroke: #d6f }\n"
             "  }\n</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
    write(kLeft, 22, title(), " font-size=\"14\"");
    write(kLeft, 42, subtitle_);
    faults(bottom);
    axis(bottom);
    for (const auto& [place, row] : rows_) {
      write(kLeft - 8, top(row) + kBar - 3, place.first + " hand " + std::to_string(place.second),
            " text-anchor=\"end\"");
    }
    for (const auto* call : waits_) wait(*call);
    for (auto& [row, beliefs] : beliefs_) bars(row, beliefs);
    for (const auto& [worker, life] : index_.lives()) marks(worker, life);
    for (const auto& [id, lease] : index_.leases()) {
      for (const auto* lost : lease.lost) {
        if (const auto row = row_of(id); row && inside(lost->t, lost->t))
          cross(lost->t, *row, "lost");
      }
    }
    legend(bottom + 50);
    text_ << "</svg>\n";
    return text_.str();
  }

 private:
  [[nodiscard]] bool inside(std::int64_t from, std::int64_t to) const {
    return from <= to_ && to >= from_;
  }
  [[nodiscard]] bool framed(const Event& event) const {
    return framed_.contains({event.t, event.k, event.worker});
  }
  static double top(std::size_t row) { return kTop + kRow * static_cast<double>(row); }

  [[nodiscard]] double x(std::int64_t at) const {
    const double part = static_cast<double>(at - from_) / static_cast<double>(to_ - from_);
    return kLeft + kWidth * std::clamp(part, 0.0, 1.0);
  }

  /// A recipe may name several leases for one call.
  [[nodiscard]] Place place_of(const std::string& op, const std::string& worker) const {
    const auto* call = index_.call(op);
    return call == nullptr ? Place{worker, 0} : Place{call->worker, call->hand};
  }

  void collect() {
    std::map<Place, std::vector<const Belief*>> held;
    for (const auto& [resource, beliefs] : index_.beliefs()) {
      for (const auto& belief : beliefs) {
        if (belief.above || belief.to <= belief.from || !inside(belief.from, belief.to)) continue;
        held[place_of(belief.op, belief.worker)].push_back(&belief);
        colours_.emplace(resource, colours_.size());
        if (framed(*belief.holds)) named_.insert(resource);
      }
    }
    for (const auto& [place, beliefs] : held) rows_[place] = 0;
    for (const auto& call : index_.calls()) {
      if (!call.acquires() || !inside(call.from(), call.to())) continue;
      waits_.push_back(&call);
      rows_[{call.worker, call.hand}] = 0;
    }
    std::size_t row = 0;
    for (auto& [place, number] : rows_) number = row++;
    for (auto& [place, beliefs] : held) beliefs_[rows_.at(place)] = std::move(beliefs);
  }

  [[nodiscard]] std::string title() const {
    std::string text;
    for (const auto* round : index_.of_kind("round")) {
      text = checks::text(*round, "topology") + ", seed " +
             std::to_string(checks::number(*round, "seed")) + ", ";
    }
    return text + interlock::format_duration(interlock::Duration(to_ - from_));
  }

  void write(double x, double y, const std::string& what, const char* more = "") {
    text_ << "<text class=\"ink\" x=\"" << x << "\" y=\"" << y << "\"" << more << ">"
          << escaped(what) << "</text>\n";
  }

  void bar(std::int64_t from, std::int64_t to, double y, double high, const std::string& look,
           const std::string& tip) {
    text_ << "<rect x=\"" << x(from) << "\" y=\"" << y << "\" width=\""
          << std::max(x(to) - x(from), 0.7) << "\" height=\"" << high << "\" " << look << "><title>"
          << escaped(tip) << "</title></rect>\n";
  }

  void faults(double bottom) {
    double y = kTop - 10;
    for (const auto& fault : index_.faults()) {
      if (!inside(fault.from, fault.to)) continue;
      const auto name = checks::text(*fault.event, "name");
      bar(fault.from, fault.to, kTop - 22, bottom - kTop + 26, "class=\"fault\"", name);
      // Neighbours write at different heights.
      y = y > kTop - 12 ? kTop - 20 : kTop - 8;
      write(x(fault.from) + 2, y, name + (fault.voids ? " (voids)" : ""), " font-size=\"10\"");
    }
  }

  void axis(double bottom) {
    const auto rough = static_cast<double>(to_ - from_) / 10;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0}) {
      if (step < rough) step = factor * power;
    }
    const auto each = std::max<std::int64_t>(1, std::llround(step));
    for (auto at = from_; at <= to_; at += each) {
      text_ << "<line class=\"line\" x1=\"" << x(at) << "\" x2=\"" << x(at) << "\" y1=\""
            << kTop - 4 << "\" y2=\"" << bottom + 4 << "\"/>\n";
      write(x(at), bottom + 20,
            at == from_ ? "0" : interlock::format_duration(interlock::Duration(at - from_)),
            " text-anchor=\"middle\"");
    }
  }

  void wait(const Call& call) {
    const auto row = rows_.at({call.worker, call.hand});
    const bool frame = framed(*call.ask) || (call.told != nullptr && framed(*call.told));
    auto what = call.op + " " + call.form;
    for (const auto& part : call.parts) what += " " + part.r;
    const auto life = index_.lives().find(call.worker);
    const bool killed = life != index_.lives().end() && life->second.killed != nullptr;
    const auto end = std::min(killed ? life->second.killed->t : kNever, call.to());
    if (end < from_) return;
    bar(std::max(call.from(), from_), std::min(end, to_), top(row) + kBar / 2 - 1, 2,
        frame ? "class=\"wait framed\"" : "class=\"wait\"", what + ": " + call.answer);
  }

  /// Beliefs that overlap share the height of the row.
  void bars(std::size_t row, std::vector<const Belief*>& beliefs) {
    std::sort(beliefs.begin(), beliefs.end(),
              [](const Belief* a, const Belief* b) { return a->from < b->from; });
    std::vector<std::int64_t> lanes;  // where each of them is free again
    std::vector<std::size_t> lane_of;
    for (const auto* belief : beliefs) {
      const auto free = std::find_if(lanes.begin(), lanes.end(),
                                     [&](std::int64_t end) { return end <= belief->from; });
      lane_of.push_back(static_cast<std::size_t>(free - lanes.begin()));
      if (free == lanes.end()) {
        lanes.push_back(belief->to);
      } else {
        *free = belief->to;
      }
    }
    const double high = kBar / static_cast<double>(std::max<std::size_t>(lanes.size(), 1));
    for (std::size_t i = 0; i < beliefs.size(); ++i) {
      const auto& belief = *beliefs[i];
      auto look = "fill=\"" + colour_of(colours_.at(belief.part.r)) + "\"";
      if (belief.part.mode == checks::Mode::shared) look += " fill-opacity=\".5\"";
      if (framed(*belief.holds)) look += " class=\"framed\"";
      auto tip = belief.part.r + ", lease " + belief.lease;
      if (belief.fence) tip += ", fence " + std::to_string(*belief.fence);
      bar(std::max(belief.from, from_), std::min(belief.to, to_),
          top(row) + high * static_cast<double>(lane_of[i]), high, look, tip);
    }
  }

  void marks(const std::string& worker, const checks::Life& life) {
    for (const auto& [place, row] : rows_) {
      if (place.first != worker) continue;
      for (const auto& stall : life.stalls) {
        if (!inside(stall.from, stall.to)) continue;
        bar(std::max(stall.from, from_), std::min(stall.to, to_), top(row), kBar,
            "class=\"stopped\"", "stopped");
      }
      if (life.killed != nullptr && inside(life.killed->t, life.killed->t)) {
        cross(life.killed->t, row, "killed");
      }
    }
  }

  [[nodiscard]] std::optional<std::size_t> row_of(const std::string& lease) const {
    const auto& its = index_.leases().at(lease);
    const auto row = rows_.find(
        its.seen.empty() ? Place{} : place_of(checks::text(*its.seen.front(), "op"), its.worker));
    return row == rows_.end() ? std::nullopt : std::optional(row->second);
  }

  void cross(std::int64_t at, std::size_t row, const char* look) {
    text_ << "<path class=\"" << look << "\" fill=\"none\" d=\"M" << x(at) - 4 << ' '
          << top(row) + 4 << "l8 8m0 -8l-8 8\"/>\n";
  }

  void legend(double y) {
    double at = kLeft;
    const auto entry = [&](const std::string& mark, const std::string& what) {
      text_ << "<g transform=\"translate(" << at << ' ' << y << ")\">" << mark << "</g>\n";
      write(at + 18, y + 10, what);
      at += 34 + 7.0 * static_cast<double>(what.size());
    };
    const auto square = [](const std::string& look) {
      return "<rect width=\"12\" height=\"12\" " + look + "/>";
    };
    const auto crossed = [](const char* look) {
      return "<path class=\"" + std::string(look) + "\" fill=\"none\" d=\"M2 2l8 8m0 -8l-8 8\"/>";
    };
    entry("<rect y=\"5\" width=\"12\" height=\"2\" class=\"wait\"/>", "waits");
    entry(square("class=\"fault\""), "fault");
    entry(square("class=\"stopped\""), "stopped");
    entry(crossed("killed"), "killed");
    entry(crossed("lost"), "lost");
    // What the violation is about comes first.
    for (const bool named : {true, false}) {
      for (const auto& [resource, colour] : colours_) {
        if (named_.contains(resource) != named || at > kWidth - 100) continue;
        entry(square("fill=\"" + colour_of(colour) + "\""), resource);
      }
    }
  }

  const Index& index_;
  std::int64_t from_;
  std::int64_t to_;
  std::string subtitle_;
  std::set<std::tuple<std::int64_t, std::string, std::string>> framed_{};
  std::set<std::string> named_{};  ///< resources of what is framed
  std::map<Place, std::size_t> rows_{};
  std::map<std::size_t, std::vector<const Belief*>> beliefs_{};  ///< of each row
  std::vector<const Call*> waits_{};
  std::map<std::string, std::size_t> colours_{};
  std::ostringstream text_{};
};

}  // namespace

std::string timeline(const Index& index, const checks::Violation& violation) {
  const auto& part = violation.events.empty() ? index.events() : violation.events;
  if (part.empty()) return Picture(index, 0, 1, violation).draw();
  const auto from = part.front().t;
  const auto to = part.back().t;
  const auto around = std::max((to - from) / 5, 50 * checks::kMillisecond);
  return Picture(index, from - around, to + around, violation).draw();
}

}  // namespace torture
