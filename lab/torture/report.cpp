#include "report.hpp"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <ostream>
#include <set>
#include <sstream>
#include <system_error>

#include "second_opinion.hpp"
#include "timeline.hpp"

namespace torture {

namespace fs = std::filesystem;
using checks::Finding;

namespace {

// One fault may show a hundred times; the first few tell as much.
constexpr std::size_t kShown = 3;
constexpr std::size_t kMostLines = 40;

std::string seconds_since(std::int64_t from, std::int64_t at) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(6) << static_cast<double>(at - from) / 1e9 << " s";
  return text.str();
}

/// "+0.001250 s  2.0  told  {…}"
void write_events(std::ostream& out, const std::vector<Event>& events, const std::string& indent) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i == kMostLines) {
      out << indent << "and " << events.size() - i << " more\n";
      return;
    }
    const auto& event = events[i];
    out << indent << '+' << seconds_since(events.front().t, event.t) << "  "
        << (event.worker.empty() ? "-" : event.worker) << "  " << event.k << "  "
        << event.fields.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }
}

void write_file(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out)
    throw std::system_error(errno, std::generic_category(), file.string() + " can't be written");
}

std::string file_name(const Finding& finding, std::size_t number) {
  auto name = finding.name + "-" + std::to_string(number + 1);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

void write_violations(const RoundResult& round, const checks::Index& index) {
  for (const auto& finding : round.findings) {
    for (std::size_t i = 0; i < std::min(finding.violations.size(), kShown); ++i) {
      const auto& violation = finding.violations[i];
      std::ostringstream text;
      text << finding.name << ": " << violation.text << "\n\n"
           << round.topology << ", seed " << round.seed << ". The same schedule again:\n  "
           << command(round) << "\n\n";
      write_events(text, violation.events, "");
      const auto file = round.directory / file_name(finding, i);
      write_file(file.string() + ".txt", text.str());
      write_file(file.string() + ".svg", timeline(index, violation));
    }
  }
}

void count(RoundResult& round, const checks::Index& index) {
  std::set<std::int64_t> skipped;
  for (const auto& event : index.events()) {
    if (event.k == "round") {
      round.topology = checks::text(event, "topology");
      round.given = checks::flag(event, "given", false);
      round.seed = static_cast<std::uint64_t>(checks::number(event, "seed"));
    }
    if (event.k == "skipped") skipped.insert(checks::number(event, "n"));
  }
  for (const auto& fault : index.faults()) {
    if (skipped.contains(checks::number(*fault.event, "n"))) continue;
    ++round.faults[checks::text(*fault.event, "name")];
  }
  round.calls = index.calls().size();
  for (const auto& call : index.calls()) round.grants += call.answer == "granted" ? 1 : 0;
  const auto& events = index.events();
  if (!events.empty()) {
    round.seconds = static_cast<double>(events.back().t - events.front().t) / 1e9;
  }
}

/// Columns as wide as what they have; the first is on the left.
class Table {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  void print(std::ostream& out) const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string gap(widths[i] - row[i].size(), ' ');
        out << (i == 0 ? row[i] + gap : "  " + gap + row[i]);
      }
      out << '\n';
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_{};
};

struct Sum {
  std::uint64_t rounds = 0, calls = 0, grants = 0, faults = 0, violations = 0, allowed = 0;
  std::int64_t lost_with = 0, lost_without = 0;
  double seconds = 0;

  void add(const RoundResult& round) {
    ++rounds;
    calls += round.calls;
    grants += round.grants;
    seconds += round.seconds;
    violations += round.violations();
    for (const auto& [name, times] : round.faults) faults += times;
    for (const auto& finding : round.findings) {
      allowed += finding.allowed;
      const auto figure = [&](const char* name) {
        const auto at = finding.figures.find(name);
        return at == finding.figures.end() ? 0 : at->second;
      };
      lost_with += figure("lost updates with fence");
      lost_without += figure("lost updates without fence");
    }
  }

  [[nodiscard]] std::vector<std::string> cells(const std::string& name) const {
    return {name,
            std::to_string(rounds),
            std::to_string(static_cast<std::int64_t>(seconds)),
            std::to_string(calls),
            std::to_string(grants),
            std::to_string(faults),
            std::to_string(violations),
            std::to_string(allowed),
            std::to_string(lost_without),
            std::to_string(lost_with)};
  }
};

struct Totals {
  std::vector<std::pair<std::string, Sum>> topologies{};  ///< in the order in which they came
  Sum all{};
  std::vector<Finding> checks{};  ///< counts only
  std::map<std::string, std::uint64_t> faults{};
};

Totals add_up(const std::vector<RoundResult>& rounds) {
  Totals totals;
  for (const auto& round : rounds) {
    auto at = std::find_if(totals.topologies.begin(), totals.topologies.end(),
                           [&](const auto& each) { return each.first == round.topology; });
    if (at == totals.topologies.end()) {
      at = totals.topologies.insert(at, {round.topology, {}});
    }
    at->second.add(round);
    totals.all.add(round);
    for (const auto& [name, times] : round.faults) totals.faults[name] += times;
    for (const auto& finding : round.findings) {
      auto sum = std::find_if(totals.checks.begin(), totals.checks.end(),
                              [&](const Finding& each) { return each.name == finding.name; });
      if (sum == totals.checks.end()) {
        sum = totals.checks.insert(sum, {.name = finding.name});
      }
      sum->looked_at += finding.looked_at;
      sum->allowed += finding.allowed;
      sum->violations.resize(sum->violations.size() + finding.violations.size());
    }
  }
  return totals;
}

void print_violations(std::ostream& out, const RoundResult& round) {
  for (const auto& finding : round.findings) {
    for (std::size_t i = 0; i < std::min(finding.violations.size(), kShown); ++i) {
      out << "\n"
          << finding.name << ": " << finding.violations[i].text << "\n  " << round.topology
          << ", seed " << round.seed << ". The same schedule again: " << command(round) << "\n";
      if (round.repeats > 0) {
        const auto again = round.came_again.find(finding.name);
        out << "  It came again in " << (again == round.came_again.end() ? 0 : again->second)
            << " of " << round.repeats << " repeats.\n";
      }
      if (!round.directory.empty()) {
        out << "  " << (round.directory / file_name(finding, i)).string() << ".svg shows it:\n";
      }
      write_events(out, finding.violations[i].events, "  ");
    }
    if (finding.violations.size() > kShown) {
      out << "\nand " << finding.violations.size() - kShown << " more violations of "
          << finding.name << " in this round of " << round.topology << "\n";
    }
  }
}

Json json_of(const RoundResult& round) {
  Json findings = Json::array();
  for (const auto& finding : round.findings) {
    Json violations = Json::array();
    for (std::size_t i = 0; i < std::min(finding.violations.size(), kShown); ++i) {
      const auto& violation = finding.violations[i];
      Json events = Json::array();
      for (const auto& event : violation.events) {
        auto line = event.fields;
        line["t"] = event.t;
        line["k"] = event.k;
        if (!event.worker.empty()) line["worker"] = event.worker;
        events.push_back(std::move(line));
      }
      violations.push_back({{"text", violation.text}, {"events", std::move(events)}});
    }
    Json line{{"check", finding.name},      {"looked_at", finding.looked_at},
              {"allowed", finding.allowed}, {"violations", finding.violations.size()},
              {"figures", finding.figures}, {"shown", std::move(violations)}};
    if (const auto again = round.came_again.find(finding.name); again != round.came_again.end()) {
      line["came_again"] = again->second;
    }
    findings.push_back(std::move(line));
  }
  return {
      {"topology", round.topology}, {"seed", round.seed},       {"seconds", round.seconds},
      {"calls", round.calls},       {"grants", round.grants},   {"faults", round.faults},
      {"command", command(round)},  {"repeats", round.repeats}, {"checks", std::move(findings)}};
}

}  // namespace

std::size_t RoundResult::violations() const {
  std::size_t sum = 0;
  for (const auto& finding : findings) sum += finding.violations.size();
  return sum;
}

RoundResult judge(const fs::path& directory, const fs::path& porcupine) {
  const auto events = read_history(directory);
  const checks::Index index(events);
  RoundResult round;
  round.directory = directory;
  count(round, index);
  round.findings = checks::check(index);
  if (auto finding = second_opinion(porcupine, directory)) {
    round.findings.push_back(std::move(*finding));
  }
  write_violations(round, index);
  return round;
}

std::string command(const RoundResult& round) {
  const auto seed = std::to_string(round.seed);
  if (round.given) return "interlock torture --seed " + seed;
  return "make torture STORE=" + round.topology + " SEED=" + seed;
}

void print_progress(std::ostream& out, const RoundResult& round) {
  std::uint64_t faults = 0;
  for (const auto& [name, times] : round.faults) faults += times;
  out << round.topology << ", seed " << round.seed << ": " << round.grants << " grants, " << faults
      << " faults, " << round.violations() << " violations\n";
}

void print(std::ostream& out, const std::vector<RoundResult>& rounds) {
  const auto totals = add_up(rounds);
  for (const auto& round : rounds) print_violations(out, round);

  out << "\nLost updates: of a register without a fence, and of one that checks it. Allowed: "
         "conflicts across a fault for which\nthe store's documents allow them.\n\n";
  Table topologies;
  topologies.row({"topology", "runs", "seconds", "calls", "grants", "faults", "violations",
                  "allowed", "lost without fence", "with fence"});
  for (const auto& [name, sum] : totals.topologies) topologies.row(sum.cells(name));
  topologies.row(totals.all.cells("all"));
  topologies.print(out);

  out << '\n';
  Table checks;
  checks.row({"check", "looked at", "allowed", "violations"});
  for (const auto& each : totals.checks) {
    checks.row({each.name, std::to_string(each.looked_at), std::to_string(each.allowed),
                std::to_string(each.violations.size())});
  }
  checks.print(out);

  out << '\n';
  Table faults;
  faults.row({"fault", "times"});
  for (const auto& [name, times] : totals.faults) faults.row({name, std::to_string(times)});
  faults.print(out);
}

Json to_json(const std::vector<RoundResult>& rounds) {
  Json json{{"rounds", Json::array()}, {"violations", add_up(rounds).all.violations}};
  for (const auto& round : rounds) json["rounds"].push_back(json_of(round));
  return json;
}

}  // namespace torture
