// What can be given on the command line, in one place: the store, and what to claim of it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events.hpp"
#include "exit_code.hpp"
#include "interlock/config.hpp"
#include "logging.hpp"

namespace cli {

/// For every command.
struct Common {
  std::string url;                    ///< --url; empty: not given
  std::optional<std::string> config;  ///< --config
  Logging log;
  interlock::Config settings{};  ///< what these, the settings file and the environment say
};

void add_common(CLI::App& app, Common& common);
/// Reads the settings: for --url and --config as they were given.
void load_settings(Common& common);

/// By the settings, and without them the file store of this user. So also if distributed locking is
/// switched off: nobody but this process would see a lock in memory.
std::string store_url(const Common& common);
/// The same for people, without secrets; `otherwise`, if nothing names a store.
std::string shown_url(const Common& common, const std::string& otherwise);
/// An error of the store's URL itself, with the place where that stands if it is not on the command line.
interlock::Error of_origin(const interlock::Error& error, const Common& common);
/// gRPC would tell of every connection that fails. Call it after the fork of a process whose command is
/// to have the environment as it was.
void quiet_grpc();
/// Opens it, also one that nobody else would see.
interlock::Client open_any_store(const Common& common,
                                 std::shared_ptr<interlock::Observer> observer = {});
/// Opens it. Throws Error for a store that nobody else would see.
interlock::Client open_store(const Common& common,
                             std::shared_ptr<interlock::Observer> observer = {});

/// For the commands that take a lock.
struct ClaimOptions {
  std::vector<std::string> names;
  std::vector<std::string> also;
  bool shared = false;
  std::uint32_t slots = 0;
  bool no_wait = false;
  std::optional<interlock::Duration> wait;
  std::optional<interlock::Duration> ttl;
  interlock::Duration default_ttl{};
  std::string label;
  std::string identity;
  std::optional<std::string> actor;
  bool inherited = false;  ///< the actor is that of a command around this one
  std::int32_t priority = 0;
  int busy_code = kBusy;
  bool quiet = false;

  /// What the command line leaves open, the settings decide, and $INTERLOCK_ACTOR.
  void take(const interlock::Config& settings);

  [[nodiscard]] std::vector<interlock::Part> parts() const;
  [[nodiscard]] interlock::Options options() const;
  [[nodiscard]] interlock::Wait how_long() const;
  /// "nightly", or "nightly and 2 more", for messages.
  [[nodiscard]] std::string title() const;
};

/// All of them but the names.
void add_claim(CLI::App& app, ClaimOptions& claim, interlock::Duration default_ttl);

/// An option that takes "10s", "1m30s", "250ms", and refuses a bare number.
CLI::Option* add_duration(CLI::App& app, const std::string& name, const std::string& what,
                          std::function<void(interlock::Duration)> then);
/// For its `then`: throws Error for what is shorter than `least`, or longer than a year.
interlock::Duration checked(interlock::Duration value, interlock::Duration least = {});
/// --duration, how long a command works: 1ms or more.
CLI::Option* add_work_time(CLI::App& app, const std::string& what, interlock::Duration& value);
/// --seed, a whole number.
CLI::Option* add_seed(CLI::App& app, const std::string& what,
                      std::function<void(std::uint64_t)> then);

}  // namespace cli
