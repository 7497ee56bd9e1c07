// The file store: many processes of one host and one user. README.md describes the files.
#include <algorithm>
#include <thread>

#include "backends/file/background.hpp"
#include "backends/file/store.hpp"
#include "core/process.hpp"
#include "interlock/stores.hpp"

namespace interlock {

namespace file {
namespace {

/// Between tries to lock a shard that somebody else has locked: short first, since most are given
/// back soon, then longer, and never in step with others.
class Pauses {
 public:
  /// False when the deadline has come.
  bool wait(TimePoint deadline) {
    const auto now = BootClock::now();
    if (now >= deadline) return false;
    const auto jitter = Duration(now.time_since_epoch().count() % (pause_.count() / 2));
    std::this_thread::sleep_for(std::min(pause_ - jitter, deadline - now));
    pause_ = std::min(pause_ * 2, kLongest);
    return true;
  }

 private:
  static constexpr Duration kLongest = std::chrono::milliseconds(1);
  Duration pause_ = std::chrono::microseconds(50);
};

class FileBackend final : public Backend {
 public:
  FileBackend(const std::filesystem::path& directory, const FileOptions& options)
      : parts_(std::make_shared<Parts>(directory, options)) {
    parts_->background.set_keep_alive(parts_);
    traits_.name = "file";
    traits_.where = parts_->store.directory().where();
    traits_.across_hosts = false;
    traits_.notices_death = true;
    traits_.heartbeat = std::chrono::seconds(1);
    static_assert(Store::kTicketTtl >= std::chrono::seconds(4), "several heartbeats");
  }

  ~FileBackend() override {
    if (forked()) {
      // All of it is the parent's, in whatever state its threads were in.
      [[maybe_unused]] auto* left_alone =
          std::make_unique<std::shared_ptr<Parts>>(std::move(parts_)).release();
    } else {
      parts_->background.close();
    }
  }

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }

  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override {
    submit(Operation::Kind::acquire, claim, queue, call, std::move(reply));
  }
  void renew(const Claim& claim, Call call, Reply reply) override {
    submit(Operation::Kind::renew, claim, false, call, std::move(reply));
  }
  void release(const Claim& claim, Call call, Reply reply) override {
    submit(Operation::Kind::release, claim, false, call, std::move(reply));
  }

  void inspect(const Query& query, Call call, Report report) override {
    if (forked()) return report({.resources = {}, .why = of_the_parent()});
    const auto now = BootClock::now();
    InspectionJob job{.inspection = {.query = query},
                      .asked = now,
                      .deadline = std::min(call.deadline, now + traits_.call_timeout),
                      .report = std::move(report)};
    if (!call.caller_waits) return push(std::move(job));
    ShardId blocker = 0;
    for (Pauses pauses; !parts_->store.attempt(job.inspection, blocker);) {
      if (pauses.wait(job.deadline)) continue;
      job.inspection.snapshot = {.resources = {},
                                 .why = parts_->store.locked_out(blocker, BootClock::now() - now)};
      break;
    }
    job.report(std::move(job.inspection.snapshot));
  }

  void on_wake(WakeSink sink) override { parts_->store.set_sink(std::move(sink)); }

 private:
  struct Parts {
    Parts(const std::filesystem::path& directory, const FileOptions& options)
        : store(directory, options.allow_network_file_system), background(store) {}
    Store store;
    Background background;
  };

  void submit(Operation::Kind kind, const Claim& claim, bool queue, Call call, Reply reply) {
    if (forked()) return reply(Answer::failed(of_the_parent()));
    const auto now = BootClock::now();
    Job job{.operation = {.kind = kind, .queue = queue, .claim = claim, .shards = shards_of(claim)},
            .asked = now,
            .deadline = std::min(call.deadline, now + traits_.call_timeout),
            .reply = std::move(reply)};
    if (!job.operation.claim.who) job.operation.claim.who = std::make_shared<const Who>();
    try {
      // Bad names must not get into a file that others read. A release only takes names out.
      if (kind != Operation::Kind::release || claim.parts.empty()) check_claim(job.operation.claim);
    } catch (const Error& error) {
      return job.reply(Answer::failed(error));
    }
    if (!call.caller_waits) return push(std::move(job));

    Operation* const operation = &job.operation;
    ShardId blocker = 0;
    for (Pauses pauses; !parts_->store.attempt({&operation, 1}, blocker);) {
      if (pauses.wait(job.deadline)) continue;
      operation->answer = Answer::failed(parts_->store.locked_out(blocker, BootClock::now() - now));
      break;
    }
    parts_->background.attend();
    job.reply(std::move(operation->answer));
  }

  template <class AnyJob>
  void push(AnyJob job) {
    const auto parts = parts_;  // the reply may come, and destroy this object, before we return
    parts->background.push(std::move(job));
  }

  [[nodiscard]] bool forked() const noexcept { return epoch_ != core::fork_epoch(); }

  [[nodiscard]] Error of_the_parent() const {
    return {Errc::forked,
            "the store was opened before a fork, and this is the child; open it again",
            {.resource = {}, .node = traits_.where, .maybe_held = false}};
  }

  Traits traits_;
  std::uint64_t epoch_ = core::fork_epoch();
  std::shared_ptr<Parts> parts_;
};

struct Place {
  std::string path;
  bool allow_network = false;
};

Place place_of(Url url) {
  const auto network = url.take("network", "refuse");
  url.expect_all_taken({"network"});
  if (network != "allow" && network != "refuse") {
    throw Error(Errc::invalid, "the store's URL: network= is 'allow' or 'refuse'");
  }
  if ((!url.authority.empty() && url.authority != "localhost") || !url.path.starts_with('/')) {
    throw Error(Errc::invalid,
                "a file store's URL needs an absolute path, and no host: "
                "file:///var/lib/app/locks has three slashes");
  }
  return {.path = std::move(url.path), .allow_network = network == "allow"};
}

std::unique_ptr<Backend> open(Url url, const std::shared_ptr<Clock>& /*the host's*/) {
  const auto place = place_of(std::move(url));
  return file_store(place.path, {.allow_network_file_system = place.allow_network});
}

}  // namespace
}  // namespace file

std::unique_ptr<Backend> file_store(const std::filesystem::path& directory, FileOptions options) {
  return std::make_unique<file::FileBackend>(directory, options);
}

void detail::check_file_store_can_be_made(Url url) {
  const auto place = file::place_of(std::move(url));
  file::Directory::check_can_be_made(place.path, place.allow_network);
}

namespace stores {

StoreEntry file() {
  return {.name = "file",
          .schemes = {"file"},
          .example = "file:///var/lib/app/locks",
          .open = &interlock::file::open};
}

}  // namespace stores

}  // namespace interlock
