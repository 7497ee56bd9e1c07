// The Redis store on one server. README.md describes the keys.
#include <algorithm>
#include <set>

#include "backends/redis/server.hpp"
#include "core/process.hpp"
#include "interlock/stores.hpp"

namespace interlock {

namespace redis {
namespace {

/// Lists resources, then looks at each of them: a chain of requests that keeps itself alive.
class Inspection : public std::enable_shared_from_this<Inspection> {
 public:
  Inspection(Server& server, const KeyNames& names, Query query, Call how, Report report)
      : server_(server),
        names_(names),
        query_(std::move(query)),
        how_(how),
        report_(std::move(report)) {}

  void start() {
    if (query_.resources.empty()) return scan("0");
    found_.insert(query_.resources.begin(), query_.resources.end());
    look();
  }

 private:
  void scan(std::string_view cursor) {
    server_.send(command({"SCAN", cursor, "MATCH", names_.pattern(query_.prefix), "COUNT", "1000"}),
                 how_, [self = shared_from_this()](const Outcome& outcome) {
                   if (!self->good(outcome)) return;
                   self->scanned(*outcome.reply);
                 });
  }

  void scanned(const redisReply& reply) {
    const auto words = elements_of(reply);
    if (words.size() != 2) return look();
    for (const auto* key : elements_of(*words[1])) {
      auto resource = names_.resource_of(text_of(*key));
      if (resource && resource->starts_with(query_.prefix)) found_.insert(std::move(*resource));
    }
    const auto cursor = text_of(*words[0]);
    cursor == "0" ? look() : scan(cursor);
  }

  void look() {
    // Without a prefix, any key of anybody looks like a lock of another program.
    const bool shows_foreign = !query_.resources.empty() || !names_.prefix().empty();
    std::vector<std::string> names;
    for (const auto& resource : found_) {
      try {
        check_resource(resource);
        (void)names_.of(resource);
        names.push_back(resource);
      } catch (const Error&) {  // not one of ours
      }
    }
    left_ = names.size();
    if (names.empty()) return report_(std::move(snapshot_));
    for (auto& name : names) {
      auto words = inspect_words(name, names_);
      server_.run(Scripts::all().inspect, std::move(words), how_,
                  [self = shared_from_this(), name, shows_foreign](const Outcome& outcome) {
                    self->looked(outcome, name, shows_foreign);
                  });
    }
  }

  // One after the other: replies of one connection come in order, on one thread at a time.
  void looked(const Outcome& outcome, const std::string& name, bool shows_foreign) {
    const bool strange = outcome.reply && is_error(*outcome.reply) &&
                         error_code(text_of(*outcome.reply)) == "WRONGTYPE";
    if (!strange) {
      if (!good(outcome)) return;
      auto state = to_state(*outcome.reply, name, shows_foreign);
      if (!state.holders.empty() || !state.waiters.empty())
        snapshot_.resources.push_back(std::move(state));
    }
    if (--left_ > 0 || over_) return;
    over_ = true;
    report_(std::move(snapshot_));
  }

  bool good(const Outcome& outcome) {
    if (over_) return false;
    if (outcome.reply && !is_error(*outcome.reply)) return true;
    over_ = true;
    report_({.resources = {},
             .why = outcome.reply ? to_error(text_of(*outcome.reply), server_.name(),
                                             Scripts::all().inspect.text)
                                  : *outcome.failure});
    return false;
  }

  Server& server_;
  const KeyNames& names_;
  const Query query_;
  const Call how_;
  const Report report_;
  std::set<std::string> found_;
  std::size_t left_ = 0;
  bool over_ = false;
  Snapshot snapshot_;
};

class RedisBackend final : public Backend {
 public:
  RedisBackend(const Settings& settings, std::string where)
      : names_(settings.prefix),
        style_{.fence = names_.fence(),
               .channel = settings.prefix + "wake:" + Owner::random().to_string()},
        server_(loop_, where, settings.endpoints.front(), settings.access, style_.channel,
                [this](const Owner& owner) { sink_(owner); }) {
    traits_.name = "redis";
    traits_.where = std::move(where);
    traits_.heartbeat = std::chrono::seconds(1);
    traits_.call_timeout = settings.access.call_timeout;
    traits_.drift_rate = 0.001;
  }

  RedisBackend(const RedisBackend&) = delete;
  RedisBackend& operator=(const RedisBackend&) = delete;
  ~RedisBackend() override { loop_.stop(); }

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }

  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override {
    call = bounded(call);
    ask(claim, queue, call, [this, claim, queue, call, reply = std::move(reply)](Answer answer) {
      // The first one of a client to wait: asks again when its turn can be told.
      const auto again = [this, claim, queue, call, reply, answer](bool listening) {
        if (!listening) return reply(answer);
        ask(claim, queue, call, reply);
      };
      if (answer.verdict != Verdict::queued || server_.listen(again)) reply(std::move(answer));
    });
  }
  void renew(const Claim& claim, Call call, Reply reply) override {
    run(Scripts::all().renew, claim, false, call, std::move(reply),
        [this, claim](const redisReply& said) {
          return acquire_answer(said, claim, traits_.where);
        });
  }
  void release(const Claim& claim, Call call, Reply reply) override {
    run(Scripts::all().release, claim, false, call, std::move(reply), &release_answer);
  }

  void inspect(const Query& query, Call call, Report report) override {
    std::make_shared<Inspection>(server_, names_, query, bounded(call), std::move(report))->start();
  }

  void on_wake(WakeSink sink) override { sink_ = std::move(sink); }
  void lend(Signal& signal, TimePoint until) override { loop_.lend(signal, until); }

 private:
  [[nodiscard]] Call bounded(Call call) const {
    call.deadline = std::min(call.deadline, BootClock::now() + traits_.call_timeout);
    return call;
  }

  void ask(const Claim& claim, bool queue, Call call, Reply reply) {
    run(Scripts::all().acquire, claim, queue, call, std::move(reply),
        [this, claim](const redisReply& said) {
          return acquire_answer(said, claim, traits_.where);
        });
  }

  template <class Read>
  void run(const Script& script, const Claim& claim, bool queue, Call call, Reply reply,
           Read read) {
    Words words;
    try {
      words = words_of(claim, queue, names_, style_);
    } catch (const Error& error) {
      return reply(Answer::failed(error));
    }
    server_.run(
        script, std::move(words), bounded(call),
        [this, &script, reply = std::move(reply), read = std::move(read)](const Outcome& outcome) {
          if (!outcome.reply) return reply(Answer::failed(*outcome.failure));
          if (is_error(*outcome.reply)) {
            return reply(
                Answer::failed(to_error(text_of(*outcome.reply), traits_.where, script.text)));
          }
          reply(read(*outcome.reply));
        });
  }

  Traits traits_;
  KeyNames names_;
  ClaimStyle style_;
  WakeSink sink_;
  Loop loop_;
  Server server_;
};

std::unique_ptr<Backend> open(Url url, const std::shared_ptr<Clock>& /*the server's*/) {
  auto settings = Settings::take_from(url);
  url.expect_all_taken(Settings::options(url.scheme == "redis+unix"
                                             ? std::vector<std::string_view>{"db"}
                                             : std::vector<std::string_view>{}));
  if (settings.endpoints.size() != 1) {
    throw Error(Errc::invalid, "the store's URL: " + url.scheme + ": names one server");
  }
  std::string where = url.scheme + "://";
  if (url.scheme == "redis+unix") {
    where += url.path;
  } else {
    where += settings.endpoints.front().to_string();
    if (url.path.size() > 1) {
      settings.access.database = database_of(url.path);
      where += "/" + std::to_string(settings.access.database);
    }
  }
  return std::make_unique<RedisBackend>(settings, std::move(where));
}

}  // namespace
}  // namespace redis

namespace stores {

StoreEntry redis() {
  return {.name = "redis",
          .schemes = {"redis", "rediss", "redis+unix"},
          .example = "redis://localhost:6379",
          .open = &interlock::redis::open};
}

}  // namespace stores

}  // namespace interlock
