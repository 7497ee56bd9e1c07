// interlock serve: the state of a store as a page for Prometheus.
#include <chrono>
#include <iostream>

#include "command.hpp"
#include "http_server.hpp"
#include "interlock/metrics.hpp"
#include "signals.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

/// What the store says, asked for at most once a second however many look.
class State {
 public:
  State(const interlock::Client& client, bool names) : client_(client), names_(names) {}

  /// Empty, and `error` says why, if the store does not answer.
  const std::string& text() {
    const auto now = std::chrono::steady_clock::now();
    if (now >= fresh_until_) {
      look();
      fresh_until_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    }
    return text_;
  }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void look() {
    try {
      text_ = interlock::to_metrics(client_.inspect(), client_.traits(), names_);
      if (!error_.empty()) complain("the store answers again");
      error_.clear();
    } catch (const interlock::Error& error) {
      if (error_.empty()) complain(error.what());
      error_ = error.what();
      text_.clear();
    }
  }

  const interlock::Client& client_;
  const bool names_;
  std::chrono::steady_clock::time_point fresh_until_{};
  std::string text_;
  std::string error_;
};

HttpResponse metrics_page(State& state, const interlock::Metrics& ours, const std::string& store) {
  const auto& text = state.text();
  return {.status = 200,
          .type = "text/plain; version=0.0.4; charset=utf-8",
          .body =
              "# HELP interlock_store_up Whether the store answered.\n"
              "# TYPE interlock_store_up gauge\n"
              "interlock_store_up{store=\"" +
              store + "\"} " + (state.error().empty() ? "1" : "0") + "\n" + text + ours.text()};
}

HttpResponse health_page(State& state) {
  (void)state.text();
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
      "  interlock serve --metrics 9100\n"
      "  interlock serve --metrics 0.0.0.0:9100 --names --url redis://locks.internal\n");
  parser.add_option("--metrics", where, "Where to listen (default host: 127.0.0.1)")
      ->type_name("[HOST:]PORT");
  parser.add_flag("--names", names, "Also figures for each lock, by its name");
  parser.read(arguments.before);
  if (where.empty()) throw UsageError("where? interlock serve --metrics [HOST:]PORT");

  const Signals signals;
  const auto metrics = std::make_shared<interlock::Metrics>();
  const auto client = open_store(parser.common, metrics);
  State state(client, names);
  HttpServer server(where, [&](const std::string& path) -> HttpResponse {
    if (path == "/metrics") return metrics_page(state, *metrics, client.traits().name);
    if (path == "/healthz") return health_page(state);
    return {.status = 404, .body = "there is /metrics and /healthz\n"};
  });
  complain("serving " + server.url() + "/metrics");
  for (;;) {
    server.run(signals.fd());
    while (const auto signal = signals.next()) {
      if (asks_to_end(*signal)) return kOk;
      if (*signal == SIGTSTP) stop_here();
    }
  }
}

}  // namespace cli
