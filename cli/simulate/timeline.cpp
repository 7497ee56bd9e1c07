// The picture: a row for each worker, time from left to right.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "command.hpp"
#include "interlock/duration.hpp"
#include "simulate/report.hpp"

namespace cli::simulation {

namespace {

using interlock::Duration;

constexpr double kLeft = 84;
constexpr double kTop = 64;
constexpr double kWidth = 1100;  // of the rows
constexpr double kRow = 22;
constexpr double kBar = 16;
constexpr std::size_t kMostEvents = 3000;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

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
  /// Not more than can be seen: the first part of the time, as long as it has so many events.
  void limit() {
    std::vector<Duration> begins;
    bool full = false;
    const auto workers = arena_.plan().workers();
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
      const auto events = arena_.events(worker);
      for (const auto& event : events) begins.push_back(event.begin);
      if (arena_.tally(worker).events > events.size() && !events.empty()) {
        until_ = std::min(until_, events.back().begin);
        full = true;
      }
    }
    if (begins.size() > kMostEvents) {
      const auto last = begins.begin() + kMostEvents;
      std::nth_element(begins.begin(), last, begins.end());
      until_ = std::min(until_, *last);
      full = true;
    }
    cut_ = full;
    until_ = std::max<Duration>(until_, std::chrono::microseconds(1));
  }

  [[nodiscard]] std::string subtitle() const {
    std::string text = "Bars: held, a colour for each resource. Thin lines: waiting.";
    if (cut_) {
      text += " Shown: the first " +
              interlock::format_duration(std::chrono::duration_cast<Duration>(until_)) + " of " +
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
    const auto& plan = arena_.plan();
    const double top = kTop + kRow * worker;
    write(kLeft - 8, top + kBar - 3,
          plan.processes > 1 ? "process " + std::to_string(worker / plan.threads) + "." +
                                   std::to_string(worker % plan.threads)
                             : "worker " + std::to_string(worker),
          " text-anchor=\"end\"");
    for (const auto& event : arena_.events(worker)) {
      if (event.begin <= until_) draw(event, top);
    }
  }

  void draw(const Event& event, double top) {
    const double from = x(event.begin);
    const double wide = std::max(x(event.end) - from, 0.7);
    const auto bar = [&](double y, double high, const std::string& look) {
      text_ << "<rect x=\"" << from << "\" y=\"" << y << "\" width=\"" << wide << "\" height=\""
            << high << "\" " << look << "/>\n";
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
