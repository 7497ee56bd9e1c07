// What a simulation has shown, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "simulate/arena.hpp"

namespace cli::simulation {

/// What all workers have seen together.
struct Summary {
  Summary(const Arena& arena, interlock::Duration took);

  std::array<Histogram, Tally::kRoles> waits{};
  Histogram all_waits{};
  Histogram holds{};
  Histogram releases{};
  std::vector<std::uint64_t> grants{};  ///< of each worker
  std::uint64_t busy = 0, timed_out = 0, cancelled = 0, lost = 0, partial = 0, evicted = 0,
                unanswered = 0;
  interlock::Duration took;
  double a_second = 0;  ///< grants
  /// Jain's index of the grants: 1 if all got the same, 1/n if one got all. In an escalation, of those
  /// who lock rows.
  double fairness = 0;
  double longest_to_mean = 0;
};

/// "interlock simulate stress --url … --seed 7": does the same again. No secrets.
std::string command(const Plan& plan, const std::string& url);
/// "stress at redis://…: 4 processes of 4 threads, …".
std::string title(const Plan& plan, const std::string& store);

void print(const Arena& arena, const Summary& summary);
/// `url`: to repeat it with. `partial`: it did not get to its end.
nlohmann::ordered_json to_json(const Arena& arena, const Summary& summary, const std::string& store,
                               const std::string& url, bool partial);

/// A picture of who waited and held when, as SVG. Throws Failure if it can't be written.
void draw(const Arena& arena, interlock::Duration took, const std::string& store,
          const std::string& file);
/// An empty one, to find out before the work whether it can be written.
void write_picture(const std::string& file, const std::string& text);
/// Throws Failure if it can't be written to; what is there stays.
void check_picture(const std::string& file);

}  // namespace cli::simulation
