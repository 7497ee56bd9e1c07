// Which rules, acceptance cases and rows a test stands for: written in the test, checked by
// coverage_test.cpp. A rule without a test fails the suite.
//
//     TEST_P(Order, WritersAreServedInOrderOfArrival) {
//       COVERS(Rule<3>, Case<17>);
#pragma once

#include <set>

namespace interlock::conformance {

/// What the compiled tests cover, known before main() begins.
inline std::set<int>& covered_rules() {
  static std::set<int> numbers;
  return numbers;
}
inline std::set<int>& covered_cases() {
  static std::set<int> numbers;
  return numbers;
}

/// A numbered rule of docs/guarantees.md.
template <int N>
struct Rule {
  inline static const bool kCovered = covered_rules().insert(N).second;
};

/// A numbered acceptance case.
template <int N>
struct Case {
  inline static const bool kCovered = covered_cases().insert(N).second;
};

/// Naming the members is enough: each is initialised, and so registered, with the program.
template <class... Requirements>
void covers() {
  (static_cast<void>(&Requirements::kCovered), ...);
}

}  // namespace interlock::conformance

#define COVERS(...) ::interlock::conformance::covers<__VA_ARGS__>()
