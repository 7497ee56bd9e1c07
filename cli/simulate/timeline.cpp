// The picture: a row for each worker, time from left to right.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "command.hpp"
#include "interlock/duration.hpp"
#include "simulate/report.hpp"
#include "torture/svg.hpp"

namespace cli::simulation {

namespace {

using interlock::Duration;
using torture::escaped;

constexpr double kLeft = 84;
constexpr double kTop = 64;
constexpr double kWidth = 1100;  // of the rows
constexpr double kRow = 22;
constexpr double kBar = 16;
constexpr std::size_t kMostEvents = 3000;  // with a bar each
constexpr std::size_t kMostColumns = 6000;

/// Far from those of its neighbours. In digits, since not everybody who draws SVG knows hues.
std::string colour(std::uint32_t resource) {
  const double hue = (resource * 137 + 210) % 360 / 60.0;
  const double light = resource / 8 % 2 == 0 ? 0.5 : 0.38;
  const double chroma = 0.65 * (1 - std::abs(2 * light - 1));
  const auto channel = [&](double offset) {
    const double at = std::fmod(hue + offset, 6);
    const double part = std::clamp(std::min(at, 4 - at), 0.0, 1.0);
    return static_cast<unsigned>(std::lround(255 * (light + chroma * (part - 0.5))));
  };
  std::array<char, 8> text{};
  (void)std::snprintf(text.data(), text.size(), "#%02x%02x%02x", channel(2) & 255U,
                      channel(0) & 255U, channel(4) & 255U);
  return text.data();
}

class Picture {
 public:
  Picture(const Arena& arena, Duration took, const std::string& store)
      : arena_(arena), store_(store), took_(took), until_(took) {
    text_.precision(6);
    limit();
  }

  std::string draw() {
    const auto& plan = arena_.plan();
    const double bottom = kTop + kRow * plan.workers();
    const double height = bottom + 74;
    text_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << kLeft + kWidth + 16
          << "\" height=\"" << height << "\" viewBox=\"0 0 " << kLeft + kWidth + 16 << ' ' << height
          << "\" font-family=\"sans-serif\" font-size=\"12\">\n<style>\n"
             "  .paper { fill: #fff } .ink { fill: #222 } .line { stroke: #ddd }\n"
             "  .wait { fill: #999 } .cancelled { fill: #d80 } .stopped { fill: #888; opacity: .35 "
             "}\n"
             "  .killed, .lost { stroke: #c00; stroke-width: 2 } .lost { stroke: #a0c }\n"
             "  @media (prefers-color-scheme: dark) {\n"
             "    .paper { fill: #181a1b } .ink { fill: #ddd } .line { stroke: #3a3d3f }\n"
             "    .wait { fill: #777 } .killed { stroke: #f55 } .lost { stroke: #d6f }\n  }\n"
             "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n";
    write(kLeft, 22, "interlock simulate " + title(plan, store_), " font-size=\"14\"");
    write(kLeft, 42, subtitle());
    axis(bottom);
    for (std::uint32_t worker = 0; worker < plan.workers(); ++worker) row(worker);
    legend(bottom + 50);
    text_ << "</svg>\n";
    return text_.str();
  }

 private:
  /// As long as everybody's events were kept; in columns, if they are too many to be seen.
  void limit() {
    std::size_t count = 0;
    const auto workers = arena_.plan().workers();
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      const auto events = arena_.events(worker);
      count += events.size();
      if (arena_.tally(worker).events > events.size() && !events.empty()) {
        until_ = std::min(until_, events.back().begin);
        cut_ = true;
      }
    }
    until_ = std::max<Duration>(until_, std::chrono::microseconds(1));
    if (count > kMostEvents) columns_ = std::clamp<std::size_t>(kMostColumns / workers, 40, 1000);
  }

  [[nodiscard]] std::string subtitle() const {
    std::string text = "Bars: held, a colour for each resource. Thin lines: waiting.";
    if (columns_ > 0) {
      text = "A column is " + interlock::format_duration(column(1)) +
             ": its bar is as high as the part of it in which something was held, in the colour of "
             "what was held longest.";
    }
    if (cut_) {
      text += " Shown: the first " + interlock::format_duration(until_) + " of " +
              interlock::format_duration(std::chrono::floor<std::chrono::milliseconds>(took_)) +
              ".";
    }
    return text;
  }

  [[nodiscard]] double x(Duration at) const {
    const double part = static_cast<double>(at.count()) / static_cast<double>(until_.count());
    return kLeft + kWidth * std::clamp(part, 0.0, 1.0);
  }

  void write(double x, double y, const std::string& what, const char* more = "") {
    text_ << "<text class=\"ink\" x=\"" << x << "\" y=\"" << y << "\"" << more << ">"
          << escaped(what) << "</text>\n";
  }

  void axis(double bottom) {
    // 1, 2 or 5 times a power of ten, so that there are five to twelve of them.
    const auto rough = static_cast<double>(until_.count()) / 10;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0}) {
      if (step < rough) step = factor * power;
    }
    const auto each = Duration(std::max<std::int64_t>(1, std::llround(step)));
    for (Duration time{}; time <= until_; time += each) {
      text_ << "<line class=\"line\" x1=\"" << x(time) << "\" x2=\"" << x(time) << "\" y1=\""
            << kTop - 4 << "\" y2=\"" << bottom + 4 << "\"/>\n";
      write(x(time), bottom + 20, time == Duration{} ? "0" : interlock::format_duration(time),
            " text-anchor=\"middle\"");
    }
  }

  void row(std::uint32_t worker) {
    const double top = kTop + kRow * worker;
    write(kLeft - 8, top + kBar - 3, worker_name(worker, arena_.plan().named_by_process()),
          " text-anchor=\"end\"");
    if (columns_ > 0) draw_columns(arena_.events(worker), top);
    for (const auto& event : arena_.events(worker)) {
      if (event.begin <= until_ && (columns_ == 0 || is_mark(event))) draw(event, top);
    }
  }

  /// When this column begins.
  [[nodiscard]] Duration column(std::size_t number) const { return until_ / columns_ * number; }
  static bool is_mark(const Event& event) {
    return event.kind == Event::stopped || event.kind == Event::killed || event.kind == Event::lost;
  }

  void draw_columns(std::span<const Event> events, double top) {
    struct Column {
      Duration waited{}, cancelled{}, held{};
      std::map<std::uint32_t, Duration> each{};
    };
    std::vector<Column> columns(columns_);
    for (const auto& event : events) {
      if (is_mark(event)) continue;
      auto at = static_cast<std::size_t>(event.begin / column(1));
      for (; at < columns_ && column(at) < event.end; ++at) {
        const auto part = std::min(event.end, column(at + 1)) - std::max(event.begin, column(at));
        auto& there = columns[at];
        if (event.kind == Event::held) {
          there.held += part / event.lanes;
          there.each[event.resource] += part / event.lanes;
        } else {
          (event.kind == Event::waiting ? there.waited : there.cancelled) += part;
        }
      }
    }
    // Neighbours that look the same are one bar.
    const auto runs = [&](const auto& look) {
      for (std::size_t from = 0, to = 0; from < columns_; from = to) {
        const auto [high, how] = look(columns[from]);
        while (to < columns_ && look(columns[to]) == std::pair(high, how)) ++to;
        if (high == 0) continue;
        bar(x(column(from)), x(column(to)), top + (kBar - high) / 2, high, how);
      }
    };
    runs([](const Column& column) -> std::pair<double, std::string> {
      if (column.waited + column.cancelled == Duration{}) return {0, ""};
      return {2, column.cancelled > column.waited ? "class=\"cancelled\"" : "class=\"wait\""};
    });
    runs([this](const Column& column) -> std::pair<double, std::string> {
      if (column.held == Duration{}) return {0, ""};
      const auto longest =
          std::max_element(column.each.begin(), column.each.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const double part = std::chrono::duration<double>(column.held) / this->column(1);
      return {std::clamp(std::round(part * kBar), 3.0, kBar),
              "fill=\"" + colour(longest->first) + "\""};
    });
  }

  void bar(double from, double to, double y, double high, const std::string& look) {
    text_ << "<rect x=\"" << from << "\" y=\"" << y << "\" width=\"" << std::max(to - from, 0.7)
          << "\" height=\"" << high << "\" " << look << "/>\n";
  }

  void draw(const Event& event, double top) {
    const double from = x(event.begin);
    const auto bar = [&](double y, double high, const std::string& look) {
      this->bar(from, x(event.end), y, high, look);
    };
    switch (event.kind) {
      case Event::waiting:
        return bar(top + kBar / 2 - 1, 2, "class=\"wait\"");
      case Event::cancelled:
        return bar(top + kBar / 2 - 1, 2, "class=\"cancelled\"");
      case Event::stopped:
        return bar(top, kBar, "class=\"stopped\"");
      case Event::held: {
        const double high = kBar / event.lanes;
        return bar(top + high * event.lane, high, "fill=\"" + colour(event.resource) + "\"");
      }
      case Event::killed:
        return cross(from, top, "killed");
      case Event::lost:
        return cross(from, top, "lost");
    }
  }

  void cross(double at, double top, const char* look) {
    text_ << "<path class=\"" << look << "\" fill=\"none\" d=\"M" << at - 4 << ' ' << top + 4
          << "l8 8m0 -8l-8 8\"/>\n";
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
    const auto count = std::min(arena_.plan().resources, 8U);
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool table = arena_.plan().kind == Kind::escalation && i == 0;
      entry(square("fill=\"" + colour(i) + "\""), table ? "table" : std::to_string(i));
    }
    if (arena_.plan().resources > count) {
      write(at, y + 10, "and " + std::to_string(arena_.plan().resources - count) + " more");
      at += 90;
    }
    const auto thin = [](const char* look) {
      return "<rect y=\"5\" width=\"12\" height=\"2\" class=\"" + std::string(look) + "\"/>";
    };
    entry(thin("wait"), "waiting");
    if (arena_.plan().kind != Kind::stress) return;
    const auto crossed = [](const char* look) {
      return "<path class=\"" + std::string(look) + "\" fill=\"none\" d=\"M2 2l8 8m0 -8l-8 8\"/>";
    };
    entry(thin("cancelled"), "cancelled");
    entry(crossed("lost"), "lease lost");
    entry(crossed("killed"), "process killed");
    entry(square("class=\"stopped\""), "process stopped");
  }

  const Arena& arena_;
  const std::string& store_;
  Duration took_;
  Duration until_;
  bool cut_ = false;
  std::size_t columns_ = 0;  ///< 0: each event has a bar
  std::ostringstream text_;
};

[[noreturn]] void refuse(const std::string& file) {
  const auto why = errno == 0 ? "" : ": " + std::generic_category().message(errno);
  throw Failure(kIo, "the picture can't be written to " + file + why + "; give another --svg");
}

}  // namespace

void draw(const Arena& arena, Duration took, const std::string& store, const std::string& file) {
  write_picture(file, Picture(arena, took, store).draw());
}

void write_picture(const std::string& file, const std::string& text) {
  errno = 0;
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) refuse(file);
}

void check_picture(const std::string& file) {
  errno = 0;
  if (!std::ofstream(file, std::ios::app)) refuse(file);
}

}  // namespace cli::simulation
