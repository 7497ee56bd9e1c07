// The figures: two panels over the number of processes, both axes logarithmic.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <sstream>

#include "report.hpp"

namespace cli::scale {

namespace {

constexpr double kWidth = 420;
constexpr double kHeight = 300;
constexpr double kLeft = 62;
constexpr double kTop = 44;
constexpr double kGap = 96;
constexpr std::array kColours = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                 "#66ccee", "#aa3377", "#777777"};

struct Line {
  std::string name{};
  std::vector<std::pair<double, double>> points{};
  std::size_t store = 0;  ///< a colour each
  bool dashed = false;    ///< another number of locks than the first

  [[nodiscard]] const char* colour() const { return kColours.at(store % kColours.size()); }
  [[nodiscard]] const char* dashes() const { return dashed ? " stroke-dasharray='6 4'" : ""; }
};

std::string number(double value) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

class Panel {
 public:
  Panel(double left, std::string title, const std::vector<Line>& lines)
      : left_(left), title_(std::move(title)) {
    for (const auto& line : lines) {
      for (const auto& [x, y] : line.points) {
        if (y <= 0) continue;
        low_x_ = std::min(low_x_, x);
        high_x_ = std::max(high_x_, x);
        low_y_ = std::min(low_y_, y);
        high_y_ = std::max(high_y_, y);
      }
    }
    low_y_ = std::pow(10, std::floor(std::log10(low_y_)));
    high_y_ = std::pow(10, std::ceil(std::log10(high_y_) + 1e-9));
    if (high_x_ <= low_x_) high_x_ = low_x_ * 10;
  }

  void draw(std::ostream& out, const std::vector<Line>& lines,
            const std::function<std::string(double)>& label) const {
    out << "<text class='t' x='" << number(left_) << "' y='" << number(kTop - 16) << "'>" << title_
        << "</text>\n";
    const auto decades = std::lround(std::log10(high_y_ / low_y_));
    for (long i = 0; i <= decades; ++i) {
      const auto y = low_y_ * std::pow(10, i);
      out << "<path class='g' d='M" << number(left_) << ' ' << number(at_y(y)) << "h"
          << number(kWidth) << "'/><text class='l' text-anchor='end' x='" << number(left_ - 6)
          << "' y='" << number(at_y(y) + 4) << "'>" << label(y) << "</text>\n";
    }
    for (const double x : {1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 10'000.0, 100'000.0}) {
      if (x < low_x_ || x > high_x_) continue;
      out << "<text class='l' text-anchor='middle' x='" << number(at_x(x)) << "' y='"
          << number(kTop + kHeight + 16) << "'>" << static_cast<long>(x) << "</text>\n";
    }
    out << "<text class='l' text-anchor='middle' x='" << number(left_ + kWidth / 2) << "' y='"
        << number(kTop + kHeight + 34) << "'>processes</text>\n";
    for (const auto& line : lines) {
      const auto* colour = line.colour();
      std::string path;
      for (const auto& [x, y] : line.points) {
        if (y <= 0) continue;
        path += (path.empty() ? "M" : "L") + number(at_x(x)) + ' ' + number(at_y(y));
        out << "<circle r='2.5' fill='" << colour << "' cx='" << number(at_x(x)) << "' cy='"
            << number(at_y(y)) << "'/>";
      }
      out << "<path fill='none' stroke-width='2' stroke='" << colour << "'" << line.dashes()
          << " d='" << path << "'/>\n";
    }
  }

 private:
  [[nodiscard]] double at_x(double x) const {
    return left_ + kWidth * std::log(x / low_x_) / std::log(high_x_ / low_x_);
  }
  [[nodiscard]] double at_y(double y) const {
    return kTop + kHeight * (1 - std::log(y / low_y_) / std::log(high_y_ / low_y_));
  }

  double left_;
  std::string title_;
  double low_x_ = 1e12;
  double high_x_ = 1;
  double low_y_ = 1e12;
  double high_y_ = 1e-12;
};

}  // namespace

std::string picture(const std::vector<Point>& points) {
  std::vector<Line> rates;
  std::vector<Line> waits;
  const bool one_size = std::all_of(points.begin(), points.end(), [&](const Point& point) {
    return point.work.locks == points.front().work.locks;
  });
  const auto line = [](std::vector<Line>& lines, const std::string& name) -> Line& {
    const auto found = std::find_if(lines.begin(), lines.end(),
                                    [&](const Line& each) { return each.name == name; });
    return found != lines.end() ? *found : lines.emplace_back(Line{.name = name});
  };
  std::vector<std::string> stores;
  for (const auto& point : points) {
    const auto locks = point.work.locks == 0   ? std::string("own locks")
                       : point.work.locks == 1 ? "one lock"
                                               : locks_in_words(point.work) + " locks";
    const auto name = point.store + (one_size ? "" : ", " + locks);
    const auto x = static_cast<double>(point.work.processes);
    if (std::find(stores.begin(), stores.end(), point.store) == stores.end())
      stores.push_back(point.store);
    for (auto* lines : {&rates, &waits}) {
      auto& one = line(*lines, name);
      one.store = static_cast<std::size_t>(std::find(stores.begin(), stores.end(), point.store) -
                                           stores.begin());
      one.dashed = point.work.locks != points.front().work.locks;
    }
    line(rates, name).points.emplace_back(x, point.seen.cycles_per_second);
    line(waits, name)
        .points.emplace_back(x, std::chrono::duration<double>(point.seen.p99_wait).count());
  }
  std::ostringstream out;
  const auto width = kLeft + 2 * kWidth + kGap + 24;
  const auto height = kTop + kHeight + 52 + 20 * ((static_cast<double>(rates.size()) + 4) / 5);
  out << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << number(width) << ' '
      << number(height) << "' font-family='sans-serif'>\n"
      << "<style>.t{font-size:15px;font-weight:bold;fill:#222}.l{font-size:12px;fill:#555}"
         ".g{stroke:#ddd;fill:none}</style>\n"
      << "<rect width='100%' height='100%' fill='#fff'/>\n";
  Panel(kLeft, "acquire + release, per second", rates).draw(out, rates, [](double value) {
    if (value < 0.99) return number(value);
    return value < 1000 ? std::to_string(static_cast<long>(value))
                        : std::to_string(static_cast<long>(value / 1000)) + "k";
  });
  Panel(kLeft + kWidth + kGap, "wait for a lock, 99th percentile", waits)
      .draw(out, waits, [](double value) {
        const auto us = std::lround(value * 1e6);
        return us < 1000      ? std::to_string(us) + " us"
               : us < 1000000 ? std::to_string(us / 1000) + " ms"
                              : std::to_string(us / 1000000) + " s";
      });
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const auto x = kLeft + static_cast<double>(i % 5) * 180;
    const auto y = kTop + kHeight + 56 + 20 * std::floor(static_cast<double>(i) / 5);
    out << "<path stroke-width='3' stroke='" << rates[i].colour() << "'" << rates[i].dashes()
        << " d='M" << number(x) << ' ' << number(y - 4) << "h22'/><text class='l' x='"
        << number(x + 28) << "' y='" << number(y) << "'>" << rates[i].name << "</text>\n";
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace cli::scale
