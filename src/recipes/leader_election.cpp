#include "interlock/leader_election.hpp"

#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "core/contain.hpp"
#include "core/process.hpp"
#include "core/quiet_thread.hpp"
#include "interlock/mutex.hpp"
#include "recipes/leader_watch.hpp"

namespace interlock {

namespace {

std::string resource_of(const std::string& cluster) {
  if (cluster.empty()) throw Error(Errc::invalid, "an election needs the name of a cluster");
  return "leader:" + cluster;
}

Options lock_options(const ElectionOptions& options) {
  Options lock;
  lock.ttl = options.ttl;
  lock.margin = options.margin.value_or(options.ttl / 10);
  lock.label = options.label;
  lock.priority = options.priority;
  lock.hierarchy = false;  // a slash in the name of a cluster means nothing
  return lock;
}

// In the background nobody waits for an error: it goes on until the store answers.
Options patient(Options lock) {
  lock.retry.attempts = std::numeric_limits<int>::max();
  return lock;
}

/// From a grant until the store has been told that it is over.
struct Term {
  explicit Term(Lease granted) : lease(std::move(granted)), number(lease.fence()) {}

  [[nodiscard]] bool lasts() const {
    return !resigned && !over.stop_requested() && lease.state() == LeaseState::held;
  }

  Lease lease;
  const Fence number;
  std::stop_source over;
  bool begun = false;     // on_gain was considered
  bool told = false;      // and called
  bool resigned = false;  // the end was wanted
  std::optional<std::stop_callback<std::function<void()>>> on_lost;
};

}  // namespace

// One thread goes from term to term: on_gain, wait for the end, on_loss, release. It makes no call that
// waits for the store before on_loss has run: an acquisition in the background is asynchronous, and
// observers look on a thread of their own.
class LeaderElection::State : public std::enable_shared_from_this<State> {
 public:
  State(Client client, const std::string& cluster, ElectionOptions options)
      : options_(std::move(options)),
        lock_(client, resource_of(cluster), lock_options(options_)),
        patient_lock_(client, resource_of(cluster), patient(lock_options(options_))),
        client_(std::move(client)),
        watch_(client_, lock_.resource(), options_.look_every, [this](std::function<void()> news) {
          const std::lock_guard lock(mutex_);
          news_.push_back(std::move(news));
          changed_.notify_all();
        }) {
    if (!client_.traits().fences) {
      throw Error(Errc::unsupported,
                  "this store has no fences, and a term is one: choose another store",
                  {.resource = lock_.resource(), .node = client_.traits().where});
    }
    if (options_.look_every <= Duration::zero())
      throw Error(Errc::invalid, "look_every has to be more than 0s",
                  {.resource = lock_.resource()});
    thread_ = core::quiet_thread([this] { run(); });
  }

  [[nodiscard]] bool forked() const noexcept { return epoch_ != core::fork_epoch(); }

  void start() {
    check_not_forked();
    const std::lock_guard lock(mutex_);
    standing_ = true;
    changed_.notify_all();
  }

  Fence campaign(const std::stop_token& stop) {
    check_not_forked();
    std::unique_lock lock(mutex_);
    const auto resignations = resignations_;
    const auto resigned = [&] { return resignations_ != resignations; };
    while (true) {
      if (on_its_thread() && !leads()) {
        throw Error(Errc::invalid, "a callback can't wait for it to lead: call start() there",
                    {.resource = lock_.resource()});
      }
      // One term at a time, and one acquisition at a time.
      changed_.wait(lock, stop, [&] { return resigned() || leads() || idle(); });
      if (resigned()) throw cancelled();
      if (leads()) return term_->number;
      if (stop.stop_requested()) throw cancelled();
      auto ask = begin_asking();
      lock.unlock();
      const std::stop_callback forward(stop, [&ask] { ask.request_stop(); });
      try {
        auto lease = lock_.acquire(ask.get_token());
        const auto number = lease.fence();
        if (end_asking(std::move(lease), ask)) return number;
      } catch (...) {
        end_asking({}, ask);
        throw;
      }
      lock.lock();
      if (ask.stop_requested()) throw cancelled();
    }
  }

  bool try_lead() {
    check_not_forked();
    std::unique_lock lock(mutex_);
    if (leads()) return true;
    if (asking_ || term_) return false;
    auto ask = begin_asking();
    lock.unlock();
    try {
      auto attempt = lock_.try_acquire();
      return end_asking(attempt ? std::move(*attempt) : Lease(), ask);
    } catch (...) {
      end_asking({}, ask);
      throw;
    }
  }

  void resign() {
    check_not_forked();
    const auto term = step_back(false);
    if (!term || on_its_thread()) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return term_ != term; });
  }

  void close() {
    (void)step_back(true);
    thread_.join();
    watch_.stop();
  }

  /// Never destroyed.
  void abandon() { abandoned_ = shared_from_this(); }

  [[nodiscard]] std::shared_ptr<const Term> leading() const {
    if (forked()) return nullptr;
    const std::lock_guard lock(mutex_);
    return leads() ? term_ : nullptr;
  }

  [[nodiscard]] std::optional<Leader> leader() const {
    check_not_forked();
    return recipes::look_at_leader(client_, lock_.resource());
  }

  void observe(recipes::LeaderWatch::Changed changed) {
    check_not_forked();
    watch_.add(std::move(changed));
  }

 private:
  void check_not_forked() const {
    if (!forked()) return;
    throw Error(Errc::forked, "this election was made before a fork, and is its parent's",
                {.resource = lock_.resource()});
  }
  [[nodiscard]] Error cancelled() const {
    return {Errc::cancelled, "the campaign was given up", {.resource = lock_.resource()}};
  }
  [[nodiscard]] bool on_its_thread() const {
    return thread_.get_id() == std::this_thread::get_id();
  }
  // With the mutex held, these three:
  [[nodiscard]] bool leads() const { return term_ && term_->lasts(); }
  [[nodiscard]] bool idle() const { return !standing_ && !asking_ && !term_; }
  std::stop_source begin_asking() {
    asking_ = true;
    return ask_ = std::stop_source();
  }

  // For what changed without the mutex: nobody is between a look at it and its sleep.
  void wake() {
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

  // True: a term begins.
  bool end_asking(Lease lease, const std::stop_source& ask) {
    std::shared_ptr<Term> term;
    if (lease) {
      term = std::make_shared<Term>(std::move(lease));
      // Not under the lock, as it is called at once if the lease is lost by now.
      term->on_lost.emplace(term->lease.lost(), [this, over = term->over]() mutable {
        wake();  // first: whoever has a callback on `over` may take his time
        over.request_stop();
      });
    }
    const bool begins = [&] {
      const std::lock_guard lock(mutex_);
      asking_ = false;
      if (term && !closing_ && !ask.stop_requested()) term_ = std::exchange(term, nullptr);
      changed_.notify_all();
      return term_ != nullptr;
    }();
    if (term) term->on_lost.reset();  // resigned meanwhile: released at the end of this scope
    return begins;
  }

  // The term that has to end now, if there is one.
  std::shared_ptr<Term> step_back(bool for_good) {
    std::unique_lock lock(mutex_);
    standing_ = false;
    ++resignations_;
    closing_ = closing_ || for_good;
    auto ask = ask_;
    auto term = term_;
    if (term && term->lasts()) term->resigned = true;
    lock.unlock();
    ask.request_stop();
    if (term) term->over.request_stop();
    wake();
    return term;
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      if (term_ && !term_->lasts()) {
        end_term(lock);
      } else if (term_ && !term_->begun) {
        begin_term(lock);
      } else if (closing_) {
        return;
      } else if (!news_.empty()) {
        const auto tell = std::move(news_.front());
        news_.pop_front();
        lock.unlock();
        tell();
        lock.lock();
      } else if (standing_ && !asking_ && !term_ && std::chrono::steady_clock::now() >= pause_) {
        ask_in_the_background(lock);
      } else if (standing_ && !asking_ && !term_) {
        changed_.wait_until(lock, pause_);
      } else {
        changed_.wait(lock);
      }
    }
  }

  void begin_term(std::unique_lock<std::mutex>& lock) {
    const auto term = term_;
    term->begun = true;
    term->told = true;
    lock.unlock();
    watch_.hurry();
    if (options_.on_gain) options_.on_gain(term->number);
    lock.lock();
  }

  void end_term(std::unique_lock<std::mutex>& lock) {
    const auto term = term_;
    std::string why;
    (void)core::contain([&] { why = term->resigned ? "it resigned" : term->lease.lost_reason(); });
    lock.unlock();
    term->over.request_stop();
    if (term->told && options_.on_loss) options_.on_loss(why);
    term->on_lost.reset();
    lock.lock();
    auto lease = std::move(term->lease);
    lock.unlock();
    lease = Lease();  // released, also if it was lost: the store may not know yet
    lock.lock();
    term_ = nullptr;
    changed_.notify_all();
    watch_.hurry();
  }

  void ask_in_the_background(std::unique_lock<std::mutex>& lock) {
    const bool asks = core::contain([&] {
      const auto ask = begin_asking();
      lock.unlock();
      patient_lock_.acquire(Wait::forever(ask.get_token()), [self = shared_from_this(),
                                                             ask](Attempt attempt) {
        // The store said no: rights, a full disk. It may change its mind.
        if (!attempt && attempt.outcome() == Outcome::failed) self->pause_for(kAfterRefusal);
        const bool ended =
            core::contain([&] { self->end_asking(attempt ? std::move(*attempt) : Lease(), ask); });
        if (!ended) self->ask_again();
      });
    });
    if (!lock.owns_lock()) lock.lock();
    if (asks) return;
    lock.unlock();
    ask_again();
    lock.lock();
  }

  void pause_for(Duration time) {
    const std::lock_guard lock(mutex_);
    pause_ = std::chrono::steady_clock::now() + time;
  }

  /// There was no memory for it.
  void ask_again() {
    pause_for(kWithoutMemory);
    const std::lock_guard lock(mutex_);
    asking_ = false;
    changed_.notify_all();
  }

  static constexpr auto kWithoutMemory = std::chrono::milliseconds(100);
  static constexpr auto kAfterRefusal = std::chrono::seconds(5);

  const std::uint64_t epoch_ = core::fork_epoch();
  std::shared_ptr<State> abandoned_;
  const ElectionOptions options_;
  const Mutex lock_;
  const Mutex patient_lock_;
  const Client client_;

  mutable std::mutex mutex_;  // guards what follows; never held during a call to store or user
  std::condition_variable_any changed_;
  bool standing_ = false;  // campaigns in the background
  bool asking_ = false;    // an acquisition is under way
  bool closing_ = false;
  std::uint64_t resignations_ = 0;          // whoever waits since before the last one gives up
  std::stop_source ask_{std::nostopstate};  // ends the acquisition
  std::shared_ptr<Term> term_;
  std::chrono::steady_clock::time_point pause_{};
  std::deque<std::function<void()>> news_;
  recipes::LeaderWatch watch_;
  std::thread thread_;
};

LeaderElection::LeaderElection(Client client, const std::string& cluster, ElectionOptions options)
    : state_(std::make_shared<State>(std::move(client), cluster, std::move(options))) {}

LeaderElection::~LeaderElection() {
  // In a forked child there are no threads to wait for, and no telling which locks are locked.
  if (state_->forked()) {
    state_->abandon();
    return;
  }
  state_->close();
}

void LeaderElection::start() { state_->start(); }
Fence LeaderElection::campaign(const std::stop_token& stop) { return state_->campaign(stop); }
bool LeaderElection::try_lead() { return state_->try_lead(); }
void LeaderElection::resign() { state_->resign(); }
bool LeaderElection::is_leader() const { return state_->leading() != nullptr; }

std::optional<Fence> LeaderElection::term() const {
  const auto term = state_->leading();
  return term ? std::optional(term->number) : std::nullopt;
}

std::stop_token LeaderElection::over() const {
  if (const auto term = state_->leading()) return term->over.get_token();
  std::stop_source stopped;
  stopped.request_stop();
  return stopped.get_token();
}

std::optional<Leader> LeaderElection::leader() const { return state_->leader(); }
void LeaderElection::observe(std::function<void(const std::optional<Leader>&)> changed) {
  state_->observe(std::move(changed));
}

}  // namespace interlock
