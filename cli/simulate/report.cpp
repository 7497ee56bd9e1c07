#include "simulate/report.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <iostream>

#include "interlock/duration.hpp"
#include "show.hpp"
#include "terminal.hpp"

namespace cli::simulation {

namespace {

using interlock::format_duration;

double rounded(double value) { return std::round(value * 1000) / 1000; }

// The one with the table has another task than those with its rows.
std::size_t first_equal(Kind kind) { return kind == Kind::escalation ? 1 : 0; }

double jain(const std::vector<std::uint64_t>& grants, std::size_t first) {
  double sum = 0;
  double squares = 0;
  for (auto i = first; i < grants.size(); ++i) {
    const auto value = static_cast<double>(grants[i]);
    sum += value;
    squares += value * value;
  }
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(grants.size() - first) * squares);
}

std::string count_of(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string quoted(const std::string& word) {
  const auto plain = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
           std::strchr("-_./:@,+=%", letter) != nullptr;
  };
  return std::all_of(word.begin(), word.end(), plain) ? word : "'" + word + "'";
}

}  // namespace

Summary::Summary(const Arena& arena, interlock::Duration in) : took(in) {
  const auto& plan = arena.plan();
  for (std::uint32_t worker = 0; worker < plan.workers(); ++worker) {
    const auto& tally = arena.tally(worker);
    std::uint64_t granted = 0;
    for (std::size_t role = 0; role < Tally::kRoles; ++role) {
      waits[role].merge(tally.waits[role]);
      all_waits.merge(tally.waits[role]);
      granted += tally.waits[role].count();
    }
    grants.push_back(granted);
    holds.merge(tally.holds);
    releases.merge(tally.releases);
    busy += tally.busy;
    timed_out += tally.timed_out;
    cancelled += tally.cancelled;
    lost += tally.lost;
    partial += tally.partial;
    evicted += tally.evicted;
    unanswered += tally.unanswered;
  }
  const double seconds = std::chrono::duration<double>(took).count();
  a_second = seconds > 0 ? static_cast<double>(all_waits.count()) / seconds : 0;
  fairness = jain(grants, std::min(first_equal(plan.kind), grants.size() - 1));
  if (all_waits.mean().count() > 0) {
    longest_to_mean = static_cast<double>(all_waits.max().count()) /
                      static_cast<double>(all_waits.mean().count());
  }
}

std::string command(const Plan& plan, const std::string& url) {
  return std::string("interlock simulate ") + to_string(plan.kind) + " --url " + quoted(url) +
         " --processes " + std::to_string(plan.processes) + " --threads " +
         std::to_string(plan.threads) + " --resources " + std::to_string(plan.resources) +
         " --duration " + format_duration(plan.duration) + " --ttl " + format_duration(plan.ttl) +
         " --hold " + format_duration(plan.hold) + (plan.no_lock ? " --no-lock" : "") + " --seed " +
         std::to_string(plan.seed);
}

std::string title(const Plan& plan, const std::string& store) {
  return std::string(to_string(plan.kind)) + " at " + store + ": " +
         count_of(plan.processes, "process", "processes") + " of " +
         count_of(plan.threads, "thread", "threads") + ", " +
         count_of(plan.resources, "resource", "resources") + ", " + format_duration(plan.duration) +
         ", seed " + std::to_string(plan.seed);
}

void print(const Arena& arena, const Summary& summary) {
  const auto& plan = arena.plan();
  const auto& ledger = arena.shared().ledger;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&rows](const std::string& name, const std::vector<std::string>& texts) {
    rows.emplace_back(1, name).insert(rows.back().end(), texts.begin(), texts.end());
  };
  add("", cell_titles());
  for (std::size_t role = 0; role < Tally::kRoles; ++role) {
    if (summary.waits[role].count() == 0) continue;
    add(std::string("wait, ") + role_name(plan.kind, role), cells(summary.waits[role]));
  }
  if (summary.holds.count() > 0) add("held", cells(summary.holds));
  if (summary.releases.count() > 0) add("release", cells(summary.releases));
  for (const auto& line : align(rows)) std::cout << line << '\n';
  std::cout << "\nAll waits:\n";
  for (const auto& line : summary.all_waits.picture()) std::cout << line << '\n';

  std::cout << '\n'
            << summary.all_waits.count() << " grants, " << for_people(summary.a_second)
            << " a second";
  if (plan.workers() > 1) {
    std::cout << "; fairness " << rounded(summary.fairness) << " (Jain's index, 1 is best"
              << (plan.kind == Kind::escalation ? "; of those who lock rows" : "")
              << "); the longest wait was " << for_people(summary.longest_to_mean)
              << " times the mean";
  }
  std::cout << '\n';
  const auto tell = [](const char* what, std::uint64_t count) {
    if (count > 0) std::cout << "  " << what << ' ' << count << '\n';
  };
  tell("waits cancelled:         ", summary.cancelled);
  tell("waits timed out:         ", summary.timed_out);
  tell("one-shot tries, busy:    ", summary.busy);
  tell("partial releases:        ", summary.partial);
  tell("leases lost:             ", summary.lost);
  tell("locks broken:            ", summary.evicted);
  tell("processes killed:        ", arena.shared().kills);
  tell("processes stopped:       ", arena.shared().stops);
  tell("store did not answer:    ", summary.unanswered);
  std::cout << "Checks: " << ledger.entries << " entries and " << ledger.writes
            << " writes were watched";
  if (ledger.refused > 0) std::cout << "; " << ledger.refused << " refused by their old fence";
  if (ledger.outlived > 0) {
    std::cout << "; " << ledger.outlived << " times a holder outlived its lease";
  }
  std::cout << ".\n";
}

nlohmann::ordered_json to_json(const Arena& arena, const Summary& summary, const std::string& store,
                               const std::string& url, bool partial) {
  const auto& plan = arena.plan();
  const auto& ledger = arena.shared().ledger;
  const auto milliseconds = [](interlock::Duration duration) {
    return rounded(static_cast<double>(duration.count()) / 1e6);
  };
  nlohmann::ordered_json waits;
  for (std::size_t role = 0; role < Tally::kRoles; ++role) {
    if (summary.waits[role].count() > 0) {
      waits[role_name(plan.kind, role)] = cli::to_json(summary.waits[role]);
    }
  }
  return {{"program", to_string(plan.kind)},
          {"store", store},
          {"partial", partial},
          {"seed", plan.seed},
          {"processes", plan.processes},
          {"threads", plan.threads},
          {"resources", plan.resources},
          {"ttl_ms", milliseconds(plan.ttl)},
          {"took_ms", milliseconds(summary.took)},
          {"grants", summary.all_waits.count()},
          {"grants_per_second", rounded(summary.a_second)},
          {"fairness", rounded(summary.fairness)},
          {"longest_wait_to_mean", rounded(summary.longest_to_mean)},
          {"waits", std::move(waits)},
          {"held", cli::to_json(summary.holds)},
          {"releases", cli::to_json(summary.releases)},
          {"grants_by_worker", summary.grants},
          {"cancelled", summary.cancelled},
          {"timed_out", summary.timed_out},
          {"busy", summary.busy},
          {"partial_releases", summary.partial},
          {"lost", summary.lost},
          {"broken", summary.evicted},
          {"killed", arena.shared().kills.load()},
          {"stopped", arena.shared().stops.load()},
          {"unanswered", summary.unanswered},
          {"entries", ledger.entries},
          {"writes", ledger.writes},
          {"refused_by_fence", ledger.refused},
          {"outlived_lease", ledger.outlived},
          {"violations", arena.watch().violations()},
          {"repeat", command(plan, url)}};
}

}  // namespace cli::simulation
