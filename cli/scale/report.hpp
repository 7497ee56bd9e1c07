// What the model says, for people, for programs and as a picture.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "crew.hpp"
#include "model.hpp"

namespace cli::scale {

/// One size, and what the model says of it.
struct Point {
  std::string store{};
  Workload work{};
  Prediction seen{};
};

/// The same size, and what real processes did.
struct Checked {
  std::string store{};
  Workload work{};
  Prediction predicted{};
  Run measured{};
};

std::vector<std::string> table(const std::vector<Point>& points);
std::vector<std::string> table(const std::vector<Checked>& checks);
/// What the words of the tables mean.
std::vector<std::string> legend();
std::vector<std::string> costs_table(const Store& store);

nlohmann::ordered_json to_json(const Point& point);
nlohmann::ordered_json to_json(const Checked& check);
nlohmann::ordered_json to_json(const Store& store);

/// Throughput and the 99th percentile of waits against the number of processes: a line for each store
/// and number of locks.
std::string picture(const std::vector<Point>& points);

/// In percent: more than 0 is too many, less is too few; NaN if nothing was measured.
double error_of(double predicted, double measured);
std::string in_words(Duration time);  ///< "1.2 ms"
std::string in_words(double count);   ///< "12.3k"
std::string locks_in_words(const Workload& work);

}  // namespace cli::scale
