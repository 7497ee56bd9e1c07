// How figures are measured and shown: ours and the baseline in turns (A B, A B, …), so that a noisy
// machine hits both alike; medians of rounds; and the ratio beside the bar it has to stay below.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace bench {

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// How long one call takes, in nanoseconds.
template <class Run>
double nanoseconds(Run run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

struct Figure {
  std::string name;
  double ours = 0;  ///< nanoseconds
  std::string baseline_name;
  double baseline = 0;
  double most = 0;    ///< the largest ratio that is good enough
  double least = 0;   ///< or, for rates, the smallest
  bool rate = false;  ///< a second, and not nanoseconds
};

inline std::string in_units(double nanoseconds) {
  char text[32];
  if (nanoseconds < 1e3) {
    (void)std::snprintf(text, sizeof(text), "%.0f ns", nanoseconds);
  } else if (nanoseconds < 1e6) {
    (void)std::snprintf(text, sizeof(text), "%.2f us", nanoseconds / 1e3);
  } else {
    (void)std::snprintf(text, sizeof(text), "%.2f ms", nanoseconds / 1e6);
  }
  return text;
}

inline std::string per_second(double rate) {
  char text[32];
  (void)std::snprintf(text, sizeof(text), rate < 1e4 ? "%.0f /s" : "%.1fk /s",
                      rate < 1e4 ? rate : rate / 1e3);
  return text;
}

inline void show(const Figure& f) {
  const double ratio = f.ours / f.baseline;
  const auto text = [&](double value) { return f.rate ? per_second(value) : in_units(value); };
  const bool good = f.least > 0 ? ratio >= f.least : ratio <= f.most;
  std::printf("%-46s %10s   %-44s %10s   %6.2fx (bar %s%gx) %s\n", f.name.c_str(),
              text(f.ours).c_str(), f.baseline_name.c_str(), text(f.baseline).c_str(), ratio,
              f.least > 0 ? ">= " : "<= ", f.least > 0 ? f.least : f.most,
              good ? "ok" : "MISSES THE BAR");
  std::fflush(stdout);
}

/// `rounds` times ours, then the baseline; each gives its nanoseconds for one operation.
template <class Ours, class Baseline>
Figure in_turns(Figure figure, int rounds, Ours ours, Baseline baseline) {
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < rounds; ++i) {
    a.push_back(ours());
    b.push_back(baseline());
  }
  figure.ours = median(std::move(a));
  figure.baseline = median(std::move(b));
  return figure;
}

}  // namespace bench
