// acquire, extend, release: locks that outlive the command, in the form of a token.
#include <pwd.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "command.hpp"
#include "interlock/duration.hpp"
#include "show.hpp"
#include "store_view.hpp"
#include "waiting.hpp"

namespace cli {

namespace {

using interlock::Duration;

/// A token belongs to no process that one could look at, so at least say whose it is.
std::string user_name() {
  const auto* user = ::getpwuid(::getuid());
  return user != nullptr ? user->pw_name : "user " + std::to_string(::getuid());
}

// Longer than the token of a claim on 1,024 names of 512 bytes, each byte percent-encoded.
constexpr std::size_t kLongestToken = std::size_t{2} << 20U;

/// "-" stands for a line of stdin.
std::string read_token(const std::vector<std::string>& given) {
  if (given.size() != 1) throw UsageError("give one token, or - to read it from stdin");
  std::string token = given.front();
  if (token == "-") token = line_of_stdin(kLongestToken);
  const auto blank = " \t\r\n";
  token.erase(0, token.find_first_not_of(blank));
  token.erase(token.find_last_not_of(blank) + 1);
  if (token.empty()) throw UsageError("the token is empty; interlock acquire prints one");
  return token;
}

nlohmann::ordered_json details(const interlock::Lease& lease, bool fences) {
  nlohmann::ordered_json json{
      {"token", ""},
      {"res", lease.resource()},
      {"resources", lease.resources()},
      {"owner", lease.owner().brief()},
      {"fence", nullptr},
      {"ttl_ms", lease.ttl() / std::chrono::milliseconds(1)},
      {"remaining_ms", lease.time_remaining() / std::chrono::milliseconds(1)}};
  if (fences) json["fence"] = lease.fence().value;
  return json;
}

/// Turns the lease into a token on stdout. A lock whose token nobody gets is given back.
int hand_over(const interlock::Client& client, interlock::Lease lease, bool as_json) {
  auto json = details(lease, client.traits().fences);
  const auto token = lease.detach();
  json["token"] = token;
  std::signal(SIGPIPE, SIG_IGN);
  if (as_json) {
    print_json(json);
  } else {
    std::cout << token << std::endl;
  }
  if (std::cout) return kOk;
  client.adopt(token, false).release();
  complain(json["res"].get<std::string>() +
           ": the token could not be printed, so the lock was released");
  return kIo;
}

}  // namespace

int acquire(const Arguments& arguments) {
  ClaimOptions claim;
  std::int64_t process = 0;
  bool json = false;
  Parser parser(
      "acquire [OPTIONS] NAME [--also NAME…]",
      "Takes the lock and prints a token for it. The lock is held until it is released with\n"
      "the token, or until its TTL ends. Nothing renews it.",
      "  token=$(interlock acquire deploy --ttl 10m --pid $$)\n"
      "  token=$(interlock extend \"$token\" --ttl 10m)\n"
      "  interlock release \"$token\"\n");
  parser.add_names(claim.names, "The lock; several names: all of them together, or none");
  add_claim(parser, claim, std::chrono::minutes(5));
  parser
      .add_option(
          "--pid", process,
          "Release the lock when this process ends, where the store can notice that; $$ is your "
          "shell")
      ->type_name("PID")
      ->check(CLI::PositiveNumber);
  parser.add_json(json);
  parser.read(arguments);
  if (claim.names.empty())
    throw UsageError("the name of the lock is missing: interlock acquire NAME");
  if (process != 0 && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) {
    throw UsageError("--pid " + std::to_string(process) + ": there is no such process");
  }

  claim.take(parser.common.settings);
  if (claim.label.empty()) claim.label = user_name();
  const Signals signals;
  const auto events = std::make_shared<Events>();
  const auto client = open_store(parser.common, events);
  if (!client.traits().detaches) {
    throw interlock::Error(interlock::Errc::unsupported,
                           "the locks of " + client.traits().where +
                               " end with the process that took them, so a token would be worth "
                               "nothing; use ?mode=lease, or interlock run");
  }
  // In line as this process, so that nobody waits for us if we are killed.
  auto waited = wait_for_lock(client, claim, claim.options(), *events, signals);
  if (!waited.lease) return waited.exit_status;
  if (process != 0 && !client.traits().notices_death) {
    complain(claim.title() + ": this store can't notice when process " + std::to_string(process) +
             " ends, so without a release the lock stays taken until its TTL has ended");
  }
  if (process != 0 && !waited.lease->tie_to(process)) {
    complain(claim.title() + ": the lock was lost before its token could be printed");
    return kLost;
  }
  return hand_over(client, std::move(*waited.lease), json);
}

int extend(const Arguments& arguments) {
  std::vector<std::string> given;
  std::optional<Duration> ttl;
  bool json = false;
  Parser parser(
      "extend [OPTIONS] TOKEN",
      "Starts the TTL of this token's lock anew, and prints the token to use from now on.",
      "  token=$(interlock extend \"$token\" --ttl 10m)\n");
  parser.add_names(given, "The token that acquire printed; - reads it from stdin", "TOKEN");
  add_duration(parser, "--ttl", "A new TTL (default: the same as before)",
               [&ttl](Duration value) { ttl = value; });
  parser.add_json(json);
  parser.read(arguments);
  const auto token = read_token(given);
  check_exists(parser.common);
  const auto client = open_store(parser.common);
  auto lease = client.adopt(token, false);
  if (!lease.extend(ttl.value_or(lease.ttl()))) {
    complain(lease.resource() + ": the lock was lost: " + lease.lost_reason());
    return kLost;
  }
  return hand_over(client, std::move(lease), json);
}

int release(const Arguments& arguments) {
  std::vector<std::string> given;
  Parser parser("release [OPTIONS] TOKEN",
                "Releases the lock of this token. Exit status 76 if the lock had ended before.",
                "  interlock release \"$token\"\n  interlock release - <token-file\n");
  parser.add_names(given, "The token that acquire printed; - reads it from stdin", "TOKEN");
  parser.read(arguments);
  const auto token = read_token(given);
  check_exists(parser.common);
  const auto client = open_store(parser.common);
  auto lease = client.adopt(token, false);
  const std::string name = lease.resource();
  if (lease.release() == interlock::LeaseState::released) return kOk;
  complain(name + ": the lock had ended before it was released");
  return kLost;
}

}  // namespace cli
