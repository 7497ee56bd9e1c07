// interlock serve: the state of a store as a page for Prometheus.
#include <atomic>
#include <chrono>
#include <iostream>

#include "aside.hpp"
#include "command.hpp"
#include "http_server.hpp"
#include "interlock/metrics.hpp"
#include "signals.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

/// {store="redis",node="redis://locks.internal:6379"}
std::string labels(const interlock::Traits& store) {
  std::string node;
  for (const char c : printable(store.where)) {
    if (c == '"' || c == '\\') node += '\\';
    node += c;
  }
  return "{store=\"" + store.name + "\",node=\"" + node + "\"}";
}

/// How often the connection to the store went and came.
class Connection final : public interlock::Observer {
 public:
  void on(const interlock::Observation& seen) noexcept override {
    if (seen.event == interlock::Event::store_down) ++lost_;
    if (seen.event == interlock::Event::store_back) ++back_;
  }
  /// `store`: its labels.
  [[nodiscard]] std::string text(const std::string& store) const {
    const auto counter = [&](const std::string& name, const char* help, std::uint64_t value) {
      return "# HELP " + name + " " + help + "\n# TYPE " + name + " counter\n" + name + store +
             " " + std::to_string(value) + "\n";
    };
    return counter("interlock_disconnects_total", "Times that the store stopped answering.",
                   lost_) +
           counter("interlock_reconnects_total", "Times that the store answered again.", back_);
  }

 private:
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> back_{0};
};

/// What the store says, asked for at most once a second however many look.
class State {
 public:
  /// Looks are given up when `until` can be read.
  State(StoreView& store, bool names, int until) : store_(store), names_(names), until_(until) {}

  /// Empty, and `error` says why, if the store does not answer.
  const std::string& text() {
    const auto now = std::chrono::steady_clock::now();
    interrupted_ = now >= fresh_until_ && !look();
    return text_;
  }
  /// A signal came first.
  [[nodiscard]] bool interrupted() const { return interrupted_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] int end(int status) { return aside_.end(status); }

 private:
  // False: interrupted.
  bool look() {
    try {
      if (!aside_.busy()) {
        aside_.start(
            [this] { seen_ = interlock::to_metrics(store_.inspect(), store_.traits(), names_); });
      }
      if (!aside_.wait(until_)) return false;
      (void)aside_.finish();
      text_ = seen_;
      if (!error_.empty()) complain("the store answers again");
      error_.clear();
    } catch (const interlock::Error& error) {
      if (error_.empty()) complain(error.what());
      error_ = error.what();
      text_.clear();
    }
    fresh_until_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    return true;
  }

  StoreView& store_;
  const bool names_;
  const int until_;
  std::chrono::steady_clock::time_point fresh_until_{};
  std::string text_;
  std::string error_;
  bool interrupted_ = false;
  std::string seen_;  // the look's
  Aside aside_;
};

HttpResponse metrics_page(State& state, const Connection& connection, const std::string& store) {
  const auto& text = state.text();
  if (state.interrupted()) return {.status = 503, .body = "interrupted; ask again\n"};
  return {.status = 200,
          .type = "text/plain; version=0.0.4; charset=utf-8",
          .body =
              "# HELP interlock_store_up Whether the store answered.\n"
              "# TYPE interlock_store_up gauge\n"
              "interlock_store_up" +
              store + " " + (state.error().empty() ? "1" : "0") + "\n" + text +
              connection.text(store)};
}

HttpResponse health_page(State& state) {
  (void)state.text();
  if (state.interrupted()) return {.status = 503, .body = "interrupted; ask again\n"};
  if (state.error().empty()) return {.status = 200, .body = "ok\n"};
  return {.status = 503, .body = printable(state.error()) + "\n"};
}

}  // namespace

int serve(const Arguments& arguments) {
  std::string where;
  bool names = false;
  Parser parser(
      "serve [OPTIONS] --metrics [HOST:]PORT",
      "Serves the state of the store for Prometheus: GET /metrics, and GET /healthz, which\n"
      "is 200 while the store answers. Ends with SIGTERM or Ctrl-C.",
      "  interlock serve --metrics 7450\n"
      "  interlock serve --metrics 0.0.0.0:7450 --names --url redis://locks.internal\n");
  parser.add_option("--metrics", where, "Where to listen (default host: 127.0.0.1)")
      ->type_name("[HOST:]PORT");
  parser.add_flag("--names", names, "Also metrics of each lock, with its name");
  parser.read(arguments);
  if (where.empty())
    throw UsageError("the port to listen at is missing: interlock serve --metrics [HOST:]PORT");

  const Signals signals;
  const auto connection = std::make_shared<Connection>();
  StoreView store(parser.common, connection);
  State state(store, names, signals.fd());
  HttpServer server(where, [&](const std::string& path) -> HttpResponse {
    if (path == "/metrics") return metrics_page(state, *connection, labels(store.traits()));
    if (path == "/healthz") return health_page(state);
    return {.status = 404, .body = "there is /metrics and /healthz\n"};
  });
  complain("serving " + server.url() + "/metrics");
  for (;;) {
    server.run(signals.fd());
    while (const auto signal = signals.next()) {
      if (asks_to_end(*signal)) return state.end(kOk);
      if (*signal == SIGTSTP) stop_here();
    }
  }
}

}  // namespace cli
