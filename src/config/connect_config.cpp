// From settings to a client.
#include <utility>

#include "config/default_place.hpp"
#include "interlock/config.hpp"

namespace interlock {

namespace {

/// One store for the whole process: whoever connects to it twice still excludes itself.
constexpr const char* kInMemory = "memory:interlock";

/// A store with something to be said about it.
class Warned final : public Backend {
 public:
  Warned(std::unique_ptr<Backend> inner, const std::vector<std::string>& warnings)
      : inner_(std::move(inner)), traits_(inner_->traits()) {
    traits_.warnings.insert(traits_.warnings.begin(), warnings.begin(), warnings.end());
  }

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override {
    inner_->acquire(claim, queue, call, std::move(reply));
  }
  void renew(const Claim& claim, Call call, Reply reply) override {
    inner_->renew(claim, call, std::move(reply));
  }
  void release(const Claim& claim, Call call, Reply reply) override {
    inner_->release(claim, call, std::move(reply));
  }
  void inspect(const Query& query, Call call, Report report) override {
    inner_->inspect(query, call, std::move(report));
  }
  void on_wake(WakeSink sink) override { inner_->on_wake(std::move(sink)); }
  void on_warning(const WarnSink& sink) override { inner_->on_warning(sink); }
  void lend(Signal& signal, TimePoint until) override { inner_->lend(signal, until); }

 private:
  std::unique_ptr<Backend> inner_;
  Traits traits_;
};

Client in_memory(const std::vector<std::string>& warnings, ClientOptions options) {
  auto store = std::make_unique<Warned>(stores::open(kInMemory, options.clock), warnings);
  return Client(std::move(store), std::move(options));
}

Client open(const Config& config, ClientOptions options) {
  config::check_default_place(config.url());
  auto store = stores::open(config.url(), options.clock);
  if (const auto warnings = config.warnings(); !warnings.empty())
    store = std::make_unique<Warned>(std::move(store), warnings);
  return Client(std::move(store), std::move(options));
}

/// "INTERLOCK_URL", "/srv/app/interlock.json:2".
std::string said_by(const Config& config) {
  const auto url = config.explain().front();
  return url.where.empty() ? std::string(to_string(url.origin)) : url.where;
}

/// What is wrong with the URL itself is said of the place where it stands.
Error of_origin(const Error& error, const Config& config) {
  if (config.explain().front().where.empty()) return error;
  return {error.errc(),
          said_by(config) + ": " + error.message(),
          {.resource = {}, .node = error.node(), .maybe_held = false}};
}

Error out_of_reach(const Error& error, const Config& config) {
  return {Errc::unreachable,
          error.message() + "; this store was set by " + said_by(config) +
              ": start it or correct that. (With \"onUnavailable\": \"memory\", the program would "
              "go on "
              "with locks that hold within this process only.)",
          {.resource = {}, .node = error.node(), .maybe_held = false}};
}

}  // namespace

Client connect(const Config& config, ClientOptions options) {
  if (!config.deadlock_detection()) options.deadlocks = Deadlocks::off;
  if (!options.told_at_start) options.told_at_start = config.options();
  if (!config.distributed_locking() || config.url().empty())
    return in_memory(config.warnings(), std::move(options));
  try {
    auto client = open(config, options);
    (void)client.inspect({.resources = {"interlock"}, .prefix = {}});
    return client;
  } catch (const Error& error) {
    if (error.errc() == Errc::invalid) throw of_origin(error, config);
    if (error.errc() != Errc::unreachable) throw;
    if (config.on_unavailable() == OnUnavailable::error) throw out_of_reach(error, config);
    return in_memory({"the store that is configured (" + said_by(config) +
                      ") can't be reached, so locks are kept in memory: they hold within this "
                      "process only, and other instances are not excluded. " +
                      error.what()},
                     std::move(options));
  }
}

}  // namespace interlock
