#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cli::scale {

namespace {

using Row = std::vector<std::string>;

std::string printed(const char* format, double value) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// Columns as wide as what is in them; the first ones to the left, numbers to the right.
std::vector<std::string> in_columns(const std::vector<Row>& rows, std::size_t left) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      const bool last = i + 1 == row.size();
      line += i < left || last ? row[i] + (last ? "" : pad) : pad + row[i];
      if (!last) line += "  ";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

double us(Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

std::string percent(double value) { return std::isnan(value) ? "-" : printed("%+.0f %%", value); }

nlohmann::ordered_json of_work(const std::string& store, const Workload& work) {
  return {{"store", store},
          {"processes", work.processes},
          {"locks", work.locks == 0 ? work.processes : work.locks},
          {"own_lock", work.locks == 0},
          {"hold_us", us(work.hold)},
          {"think_us", us(work.think)},
          {"ttl_us", us(work.ttl)},
          {"skew", work.skew},
          {"shared", work.shared},
          {"leases", work.leases},
          {"seed", work.seed}};
}

nlohmann::ordered_json of_prediction(const Prediction& seen) {
  return {{"cycles_per_second", seen.cycles_per_second},
          {"mean_wait_us", us(seen.mean_wait)},
          {"median_wait_us", us(seen.median_wait)},
          {"p99_wait_us", us(seen.p99_wait)},
          {"longest_wait_us", us(seen.longest_wait)},
          {"calls_per_cycle", seen.calls_per_cycle},
          {"wakes_per_cycle", seen.wakes_per_cycle},
          {"messages_per_second", seen.messages_per_second},
          {"server_load", seen.server_load},
          {"disk_load", seen.log_load},
          {"file_load", seen.gate_load},
          {"client_load", seen.client_load},
          {"lock_load", seen.lock_load},
          {"longest_call_us", us(seen.longest_call)},
          {"latest_renewal_us", us(seen.latest_renewal)},
          {"limit", limit(seen)}};
}

}  // namespace

double error_of(double predicted, double measured) {
  return measured == 0 ? std::nan("") : (predicted / measured - 1) * 100;
}

std::string in_words(Duration time) {
  const auto value = us(time);
  if (value < 9.95) return printed("%.1f us", value);
  if (value < 999.5) return printed("%.0f us", value);
  if (value < 9950) return printed("%.1f ms", value / 1e3);
  if (value < 999'500) return printed("%.0f ms", value / 1e3);
  if (value < 9.95e6) return printed("%.1f s", value / 1e6);
  return printed("%.0f s", value / 1e6);
}

std::string in_words(double count) {
  if (count < 9.995) return printed("%.2f", count);
  if (count < 9999.5) return printed("%.0f", count);
  if (count < 999'500) return printed("%.1fk", count / 1e3);
  return printed("%.1fM", count / 1e6);
}

std::string locks_in_words(const Workload& work) {
  return work.locks == 0 ? "own"
                         : in_words(static_cast<double>(work.locks))
                               .substr(0, work.locks < 10 ? 1 : std::string::npos);
}

std::vector<std::string> table(const std::vector<Point>& points) {
  std::vector<Row> rows{{"STORE", "LOCKS", "PROCESSES", "CYCLES/S", "MEAN WAIT", "P99 WAIT",
                         "MESSAGES/S", "PER CYCLE", "SERVER", "SHORT FIRST"}};
  for (const auto& [store, work, seen] : points) {
    std::string what = limit(seen);
    // What a client would not wait for, or a lease not outlive.
    if (seen.longest_call > std::chrono::seconds(5)) what += "; calls take over 5 s";
    if (seen.latest_renewal > work.ttl * 2 / 3) what += "; leases are lost";
    const auto wait = [&, stands = seen.cycles == 0](Duration time) {
      return stands ? "-" : in_words(time);
    };
    rows.push_back({store, locks_in_words(work), std::to_string(work.processes),
                    in_words(seen.cycles_per_second), wait(seen.mean_wait), wait(seen.p99_wait),
                    in_words(seen.messages_per_second), printed("%.1f", seen.messages_per_cycle()),
                    printed("%.0f %%", std::max(seen.server_load, seen.log_load) * 100), what});
  }
  return in_columns(rows, 1);
}

std::vector<std::string> legend() {
  return {
      "A cycle is an acquire and its release; PER CYCLE are the messages of one. own: each process "
      "has",
      "its own lock. SERVER: how busy its CPU or disk is. SHORT FIRST: what is used to 90 % or "
      "more."};
}

std::vector<std::string> table(const std::vector<Checked>& checks) {
  std::vector<Row> rows{{"STORE", "LOCKS", "PROCESSES", "", "PREDICTED", "MEASURED", "ERROR", ""}};
  for (const auto& check : checks) {
    const auto& predicted = check.predicted;
    const auto& measured = check.measured;
    const auto add = [&](const char* what, const std::string& a, const std::string& b,
                         double error) {
      rows.push_back({check.store, locks_in_words(check.work), std::to_string(check.work.processes),
                      what, a, b, percent(error), ""});
    };
    const auto wait = [&](const char* what, Duration a, Duration b) {
      add(what, in_words(a), in_words(b), error_of(us(a), us(b)));
    };
    add("cycles/s", in_words(predicted.cycles_per_second), in_words(measured.cycles_per_second),
        error_of(predicted.cycles_per_second, measured.cycles_per_second));
    wait("mean wait", predicted.mean_wait, measured.mean_wait);
    wait("p99 wait", predicted.p99_wait, measured.p99_wait);
    const auto messages = measured.calls_per_cycle + measured.wakes_per_cycle;
    add("messages/cycle", in_words(predicted.messages_per_cycle()), in_words(messages),
        error_of(predicted.messages_per_cycle(), messages));
    if (measured.outside > 0.1)
      rows.back().back() = printed("(others used %.1f cores)", measured.outside);
  }
  return in_columns(rows, 1);
}

std::vector<std::string> costs_table(const Store& store) {
  std::vector<Row> rows{{"CALL", "SERVER", "EACH IN LINE", "EACH DOUBLING", "DISK"}};
  for (std::size_t i = 0; i < kSteps; ++i) {
    const auto& cost = store.costs.at(i);
    rows.push_back({kStepNames.at(i), in_words(cost.fixed), in_words(cost.per_record),
                    in_words(cost.per_doubling), cost.logged ? in_words(store.flush) : "-"});
  }
  auto lines = in_columns(rows, 1);
  lines.push_back("client: " + in_words(store.client) + " a call, " + in_words(store.woken) +
                  " when woken; one way: " + in_words(store.one_way) + "; a wake-up takes " +
                  in_words(store.push) +
                  " longer; a server that goes to sleep: " + in_words(store.idle));
  lines.push_back("with each doubling of the processes from " +
                  std::to_string(store.crowding_from) +
                  " on: " + printed("%.0f %% more", store.crowding * 100));
  lines.emplace_back(
      "take: granted at once; join: has to queue; claim: was woken, and is granted; beat: goes on");
  lines.emplace_back(
      "waiting; free: a release, nobody waits; pass: one that wakes the next. EACH IN LINE, EACH");
  lines.emplace_back(
      "DOUBLING: so much more for each in line, and each time that they are twice as many");
  return lines;
}

nlohmann::ordered_json to_json(const Point& point) {
  auto json = of_work(point.store, point.work);
  json.update(of_prediction(point.seen));
  return json;
}

nlohmann::ordered_json to_json(const Checked& check) {
  auto json = of_work(check.store, check.work);
  const auto& [store, work, predicted, measured] = check;
  json["predicted"] = of_prediction(predicted);
  json["measured"] = {{"cycles_per_second", measured.cycles_per_second},
                      {"mean_wait_us", us(measured.mean_wait)},
                      {"median_wait_us", us(measured.median_wait)},
                      {"p99_wait_us", us(measured.p99_wait)},
                      {"calls_per_cycle", measured.calls_per_cycle},
                      {"wakes_per_cycle", measured.wakes_per_cycle},
                      {"client_cpu_us", us(measured.client_cpu)},
                      {"server_cpu_us", us(measured.server_cpu)},
                      {"others_cores", measured.outside}};
  json["error_percent"] = {
      {"cycles_per_second", error_of(predicted.cycles_per_second, measured.cycles_per_second)},
      {"mean_wait", error_of(us(predicted.mean_wait), us(measured.mean_wait))},
      {"p99_wait", error_of(us(predicted.p99_wait), us(measured.p99_wait))},
      {"messages_per_cycle", error_of(predicted.messages_per_cycle(),
                                      measured.calls_per_cycle + measured.wakes_per_cycle)}};
  return json;
}

nlohmann::ordered_json to_json(const Store& store) {
  nlohmann::ordered_json json{{"kind", store.name},
                              {"client_us", us(store.client)},
                              {"woken_us", us(store.woken)},
                              {"one_way_us", us(store.one_way)},
                              {"push_us", us(store.push)},
                              {"idle_us", us(store.idle)},
                              {"flush_us", us(store.flush)},
                              {"crowding", store.crowding},
                              {"crowding_from", store.crowding_from}};
  for (std::size_t i = 0; i < kSteps; ++i)
    json["costs"][kStepNames.at(i)] = {{"fixed_us", us(store.costs.at(i).fixed)},
                                       {"per_record_us", us(store.costs.at(i).per_record)},
                                       {"per_doubling_us", us(store.costs.at(i).per_doubling)}};
  return json;
}

}  // namespace cli::scale
