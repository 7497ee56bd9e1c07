// Lease mode: rows in a table, on the database's clock. Works through a pooler, too.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "backends/postgres/link.hpp"
#include "backends/postgres/schema.hpp"
#include "backends/postgres/settings.hpp"

namespace interlock::postgres {

class LeaseStore final : public Backend {
 public:
  explicit LeaseStore(Settings settings);
  LeaseStore(const LeaseStore&) = delete;
  LeaseStore& operator=(const LeaseStore&) = delete;
  ~LeaseStore() override;

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override;
  void renew(const Claim& claim, Call call, Reply reply) override;
  void release(const Claim& claim, Call call, Reply reply) override;
  void inspect(const Query& query, Call call, Report report) override;
  void on_wake(WakeSink sink) override { wake_ = std::move(sink); }
  void on_warning(const WarnSink& sink) override { warn_ = sink; }
  void lend(Signal& signal, TimePoint until) override { loop_.lend(signal, until); }

 private:
  /// closed: not now, but it is tried again and again.
  enum class Hearing : std::uint8_t { unneeded, opening, open, closed, impossible };

  void ask(const Statement& statement, std::vector<std::string> parameters, Call call, Done done);
  [[nodiscard]] Link::Plan plan() const;
  /// The number to be told at; 0: we can't be told.
  [[nodiscard]] std::string home();
  /// Somebody waits from now on. True: his turn can be told, or never will be. False: `then` is
  /// called when it is known which.
  bool listen(std::function<void(bool listening)> then);
  void note(const Owner& owner, bool queued);
  void hearing_is(Hearing now);
  void warn(const std::string& what) const;

  const Settings settings_;
  Traits traits_;
  WakeSink wake_;
  WarnSink warn_;
  const std::int64_t home_;
  std::int64_t session_ = 0;       ///< what the commands' session has locked
  std::int64_t last_session_ = 0;  ///< the same, of the last one that was greeted
  io::Loop loop_;
  std::shared_ptr<Link> commands_;
  std::mutex mutex_;
  // Guarded by the mutex:
  std::shared_ptr<Link> messages_;
  Hearing hearing_ = Hearing::unneeded;
  std::vector<std::function<void(bool)>> waiting_;
  std::unordered_set<Owner> queued_;  ///< who would be told, as far as known
};

}  // namespace interlock::postgres
