// interlock simulate scale: what a store will do with more processes and locks than are here.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "interlock/duration.hpp"
#include "scale/measure.hpp"
#include "scale/profiles.hpp"
#include "scale/report.hpp"
#include "show.hpp"
#include "simulate.hpp"
#include "simulate/report.hpp"
#include "standard_error.hpp"

namespace cli {

namespace {

using namespace std::chrono_literals;

struct Asked {
  std::vector<std::string> profiles{};
  std::vector<int> processes{};
  std::vector<int> locks{};
  scale::Workload work{};
  std::optional<interlock::Duration> round_trip{};
  std::optional<interlock::Duration> service_time{};
  std::optional<int> cores{};
  std::optional<int> servers{};
  bool check = false;
  bool json = false;
  std::string svg{};
};

void add_options(Parser& parser, Asked& asked) {
  auto& work = asked.work;
  const auto duration = [&](const char* name, const char* what, interlock::Duration& to) {
    add_duration(parser, name, what, [&to](auto value) { to = checked(value); });
  };
  const auto part = [&](const char* name, double& to, int most, const char* what) {
    return parser.add_option(name, to, what)->check([most](const std::string& text) {
      // Nothing compares with a NaN, so a range alone would let it through.
      double value = 0;
      return CLI::detail::lexical_cast(text, value) && value >= 0 && value <= most
                 ? std::string()
                 : "'" + text + "' is not a number from 0 to " + std::to_string(most);
    });
  };
  parser
      .add_option("--profile", asked.profiles,
                  "Costs as they were measured elsewhere: file, redis, redis-cluster, redlock, "
                  "postgres, postgres-lease, etcd, or all (default: measured on the store that "
                  "is set, else all)")
      ->type_name("STORE,…")
      ->delimiter(',');
  parser
      .add_option("-p,--processes", asked.processes,
                  "Numbers of processes (default: 16,256,4096,10000)")
      ->type_name("N,…")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000));
  parser
      .add_option("-l,--locks", asked.locks,
                  "Numbers of locks, picked at random; 0: one for each process (default: 1,0)")
      ->type_name("N,…")
      ->delimiter(',')
      ->check(CLI::Range(0, 10'000'000));
  duration("--hold", "How long a lock is held, on average (default: 0s)", work.hold);
  duration("--think", "How long a process does something else (default: 0s)", work.think);
  add_duration(parser, "--ttl", "Of a lease (default: 30s)", [&work](auto value) {
    interlock::check_ttl(value, "");
    work.ttl = value;
  });
  part("--skew", work.skew, 5, "Some locks more often: Zipf's exponent (default: 0)")
      ->type_name("S");
  part("--shared", work.shared, 1, "Which part of the locks is shared (default: 0)")
      ->type_name("PART");
  parser
      .add_option("--leases", work.leases, "More leases that each process keeps alive (default: 0)")
      ->type_name("N")
      ->check(CLI::Range(0, 100'000));
  add_duration(parser, "--round-trip", "Time to the server and back, instead of the measured one",
               [&](auto value) { asked.round_trip = checked(value); });
  add_duration(parser, "--service-time", "Of each call at the server, instead of what was measured",
               [&](auto value) { asked.service_time = checked(value); });
  parser
      .add_option("--cores", asked.cores,
                  "Cores of each server; with files, of the machine (default: as here)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  parser.add_option("--servers", asked.servers, "Servers of a cluster, or of Redlock (default: 3)")
      ->type_name("N")
      ->check(CLI::Range(1, 100));
  add_work_time(parser,
                "Of simulated time (default: 5s, or a minute); with --check, of real time (2s)",
                work.duration);
  add_seed(parser, "The same one gives the same run (default: 1)",
           [&work](auto value) { work.seed = value; });
  parser.add_flag("--check", asked.check,
                  "Also run as many real processes on --url, and show the error of the model");
  parser.add_option("--svg", asked.svg, "Also draw throughput and waits")->type_name("FILE");
  parser.add_json(asked.json);
}

void adjust(scale::Store& store, scale::Workload& work, const Asked& asked) {
  if (asked.round_trip && !store.on_clients) store.one_way = *asked.round_trip / 2;
  if (asked.service_time) {
    for (auto& cost : store.costs) cost.fixed = *asked.service_time;
  }
  const int cores = asked.cores.value_or(scale::cores_here());
  store.cores = cores;
  if (store.on_clients) work.client_cores = cores;
  if (asked.servers && (store.servers > 1 || store.votes > 1)) {
    store.servers = *asked.servers;
    if (store.votes > 1) store.votes = *asked.servers;
  }
}

template <class Done>
void each_size(const Asked& asked, const Done& done) {
  for (const auto locks : asked.locks) {
    for (const auto processes : asked.processes) {
      auto work = asked.work;
      work.locks = locks;
      work.processes = processes;
      done(work);
    }
  }
}

void print(const std::vector<std::string>& lines) {
  for (const auto& line : lines) std::cout << line << '\n';
}

std::vector<scale::Checked> check(const std::string& url, const scale::Store& store,
                                  const Asked& asked) {
  std::vector<scale::Checked> checks;
  each_size(asked, [&](const scale::Workload& work) {
    checks.push_back(
        {store.name, work, scale::predict(store, scale::here(work)), scale::best_run(url, work)});
  });
  return checks;
}

scale::Measured measure(const std::string& url, const std::string& set_by, bool quietly) {
  try {
    return scale::measure(url, [&](const std::string& what) {
      if (!quietly) write_error("measuring: " + what + "\n");
    });
  } catch (const interlock::Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw Failure(kUnavailable,
                  error.what() + (set_by.empty() ? "" : "; this store was set by " + set_by));
  }
}

}  // namespace

int simulate_scale(const Arguments& arguments) {
  Asked asked;
  asked.work.duration = 0s;
  Parser parser(
      "simulate scale [OPTIONS]",
      "Predicts what a store does with thousands of processes: throughput, waits, messages, and\n"
      "what will be short first. What calls cost is measured on the store that is set (--url, as\n"
      "for all commands), in about ten seconds and with up to 48 processes; if none is set, and\n"
      "with --profile, it is as measured on another machine.",
      "  interlock simulate scale --profile all                each kind of store\n"
      "  interlock simulate scale --url redis://db --locks 1000 --hold 20ms --think 1s\n"
      "  interlock simulate scale --url redis://localhost --check --processes 16,64\n"
      "  interlock simulate scale --profile redis,etcd --round-trip 500us --svg scale.svg\n");
  add_options(parser, asked);
  parser.read(arguments);
  if (!asked.profiles.empty() && !parser.common.url.empty())
    throw UsageError(
        "--url measures a store, --profile has costs of another machine: give one of them");
  const auto shown = shown_url(parser.common, "");
  const bool measures = asked.profiles.empty() && !shown.empty();
  if (asked.check && !measures)
    throw UsageError("--check compares with real processes on a store: give its --url" +
                     std::string(asked.profiles.empty() ? "" : ", and leave --profile out"));
  if (asked.check && !asked.svg.empty())
    throw UsageError("--check draws no picture: leave --svg out");
  if (asked.processes.empty())
    asked.processes = asked.check ? std::vector{16, 64} : std::vector{16, 256, 4096, 10'000};
  if (asked.locks.empty()) asked.locks = {1, 0};
  const bool given = asked.work.duration != 0s;
  if (!given) asked.work.duration = asked.check ? 2s : 5s;

  std::vector<scale::Store> stores;
  nlohmann::ordered_json json{{"points", nlohmann::json::array()}};
  if (measures) {
    const auto url = store_url(parser.common);
    if (scale::kind_of(url).empty())
      throw Failure(kUsage, "there is no model of " + shown + "; give --profile all");
    if (!asked.json)
      std::cout << "costs: measured at " << shown << '\n'
                << set_by(arguments) << '\n'
                << std::flush;
    const auto measured = measure(url, *arguments.store_set_by, asked.json);
    stores.push_back(measured.store);
    if (measured.outside > 0.2)
      complain("warning: something else used " + scale::in_words(measured.outside) +
               " cores of this machine meanwhile; measure again when it is quiet");
    if (!measured.server_here)
      complain(
          "warning: the server is on another machine, and what a call costs it is estimated "
          "from what " +
          std::to_string(8 * scale::cores_here()) + " processes could do");
    json["costs"] = scale::to_json(measured.store);
    if (!asked.json) {
      print(scale::costs_table(measured.store));
      std::cout << '\n';
    }
    if (asked.check) {
      const auto checks = check(url, measured.store, asked);
      if (asked.json) {
        for (const auto& each : checks) json["points"].push_back(scale::to_json(each));
        print_json(json, 2);
      } else {
        print(scale::table(checks));
      }
      return kOk;
    }
  } else {
    const auto known = scale::profile_names();
    const bool all = asked.profiles.empty() || asked.profiles == std::vector<std::string>{"all"};
    for (const auto& name : all ? known : asked.profiles) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw UsageError("there is no profile \"" + name +
                         "\"; see: interlock simulate scale --help");
      stores.push_back(scale::profile(name));
    }
  }

  // Where a wait takes longer than what was looked at, look for longer.
  const auto see = [&](const scale::Store& store, scale::Workload work) {
    auto seen = scale::predict(store, work);
    if (given || seen.longest_wait < work.duration / 4) return seen;
    work.duration *= 12;
    return scale::predict(store, work);
  };
  std::vector<scale::Point> points;
  for (auto& store : stores) {
    adjust(store, asked.work, asked);
    each_size(asked, [&](const scale::Workload& work) {
      points.push_back({store.name, work, see(store, work)});
    });
    asked.work.client_cores = 0;
  }
  if (!asked.svg.empty()) simulation::write_picture(asked.svg, scale::picture(points));
  if (asked.json) {
    for (const auto& point : points) json["points"].push_back(scale::to_json(point));
    print_json(json, 2);
    return kOk;
  }
  if (!measures) std::cout << "costs: " << scale::profiles_measured_on() << "\n\n";
  print(scale::table(points));
  std::cout << '\n';
  print(scale::legend());
  return kOk;
}

}  // namespace cli
