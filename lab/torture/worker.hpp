// A process of its own that takes locks in every way there is, and writes down what came of it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "grip.hpp"
#include "history.hpp"
#include "interlock/client.hpp"

namespace torture {

/// What a worker is told at its start, as JSON on its standard input. Its end is the end of that input.
struct WorkerPlan {
  std::string name{};  ///< "2.0": worker 2, its first life
  std::string url{};
  std::string prefix{};  ///< of all names
  std::uint64_t seed = 0;
  int hands = 3;  ///< threads that take locks
  std::filesystem::path directory{};
  std::filesystem::path command{};  ///< the interlock command; empty: not used
  /// How this program is called to be a worker or to touch: its name, and what comes before these words.
  std::vector<std::string> self{"torture"};
  interlock::Duration shortest_ttl{};
  bool across_processes = true;
  interlock::Duration long_ttl{};   ///< of the names that begin with kLongNames
  bool survives_no_memory = false;  ///< for those who start it
};
void to_json(Json& json, const WorkerPlan& plan);
void from_json(const Json& json, WorkerPlan& plan);

/// A lock with a long TTL that nobody holds, and that only its TTL frees, is a fault: those who took it have ended in order.
/// What the killed ones leave, the director breaks.
constexpr auto kLongNames = "long";

/// How a URL becomes a client.
using Opener = std::function<interlock::Client(const std::string& url)>;

/// What the hands of a process share.
struct Worker {
  Worker(WorkerPlan its, const Opener& open);

  WorkerPlan plan;
  Log log;
  interlock::Client client;
  Watch watch{log};
  std::atomic<std::uint64_t> ops = 0;
  std::stop_source ending;
  /// Held around some calls, and taken in some callbacks of lost(): as a program does that guards its own data.
  std::mutex data;

  /// "2.0/17"
  std::string next_op();
};

/// Reads the plan from standard input, works until that ends, leaves in order. The exit status.
int run_worker(const Opener& open);

/// `torture touch DIRECTORY OP RESOURCE ASKED MILLISECONDS`: what `interlock run` runs. Believes to hold the
/// resource for as long as it lives.
int run_touch(const std::vector<std::string>& words);

}  // namespace torture
