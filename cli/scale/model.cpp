#include "model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "random.hpp"
#include "stations.hpp"

namespace cli::scale {

namespace {

constexpr int kShards = 4096;
constexpr std::int32_t kNobody = -1;

enum class Ask : std::uint8_t { acquire, release, renew };

struct Call {
  Ask ask{};
  Step step{};
  std::int32_t process = 0;
  std::int32_t lock = 0;
  std::int32_t server = 0;
  std::int32_t whole = kNobody;  // of a call to several servers: the one that they are part of
  std::int32_t next = kNobody;   // at the gate
  int answers = 0;               // of a call to several servers
  int parts_left = 0;
  bool granted = false;
  bool seen = false;  // by one of several servers
  bool over = false;  // only its parts are still under way
  Ns began = 0;
};

struct Process {
  enum class State : std::uint8_t { thinks, asks, waits, holds, gives } state{};
  bool shared = false;
  bool in_line = false;
  bool woken = false;  // while it asked
  bool told = false;   // since the store last saw it
  std::int32_t lock = 0;
  std::int32_t next = kNobody;  // in line
  std::int32_t before = kNobody;
  std::uint32_t turn = 0;   // counts its acquisitions
  std::uint32_t asked = 0;  // counts its calls, for the heartbeat
  Ns since = 0;
};

struct Lock {
  std::int32_t first = kNobody;
  std::int32_t last = kNobody;
  std::int32_t waiting = 0;
  std::int32_t waiting_alone = 0;  // those who don't share
  std::int32_t holders = 0;
  bool exclusive = false;  // how it is held
  Ns busy_since = 0;
  Ns busy = 0;
};

struct GateState {
  bool shut = false;
  std::int32_t first = kNobody;  // of the calls before it
  std::int32_t last = kNobody;
  std::int32_t waiting = 0;
  Ns shut_since = 0;
  Ns busy = 0;
};

class Simulation {
 public:
  Simulation(const Store& store, const Workload& work, const Watch& watch)
      : store_(store),
        work_(work),
        watch_(watch),
        random_(work.seed),
        pick_(work.locks == 0 ? work.processes : work.locks, work.locks == 0 ? 0 : work.skew),
        processes_(static_cast<std::size_t>(work.processes)),
        locks_(static_cast<std::size_t>(work.locks == 0 ? work.processes : work.locks)),
        gates_(store.gate == Gate::none    ? 0
               : store.gate == Gate::shard ? kShards
                                           : locks_.size()),
        servers_(static_cast<std::size_t>(std::max(store.servers, store.votes))) {
    pools_.emplace_back(work.client_cores);
    for (auto& server : servers_) {
      if (store.on_clients || work.one_machine) continue;
      server.pool = static_cast<std::int8_t>(pools_.size());
      pools_.emplace_back(store.cores);
    }
    if (store.gate == Gate::shard) records_.resize(kShards);
    const auto doublings =
        std::log2(static_cast<double>(work.processes) / std::max(1, store.crowding_from));
    crowding_ = 1 + store.crowding * std::max(0.0, doublings);
    client_ = work.one_machine || store.on_clients ? times(store.client, crowding_) : store.client;
  }

  Prediction run() {
    for (int i = 0; i < work_.processes; ++i) {
      at(some_time(std::max(work_.think, Duration(std::chrono::microseconds(100)))), Then::ask, i,
         0);
      if (work_.leases > 0)
        at(static_cast<Ns>(static_cast<double>(keep_alive_every()) * random_.uniform()),
           Then::keep_alive, i, 0);
    }
    const Ns end = warm_up() + work_.duration.count();
    bool measuring = false;
    while (!agenda_.empty()) {
      const auto event = agenda_.next();
      if (event.at > end) break;
      now_ = event.at;
      if (!measuring && now_ >= warm_up()) {
        measuring = true;
        begin_measuring();
      }
      if (event.pool >= 0) core_is_free(event.pool);
      handle(event);
    }
    now_ = end;
    return result();
  }

 private:
  // ---- time ----------------------------------------------------------------------------------

  [[nodiscard]] Ns warm_up() const { return work_.duration.count() / 5; }

  void at(Ns time, Then then, std::int32_t who, std::uint32_t turn = 0) {
    agenda_.add({.at = time, .who = who, .turn = turn, .then = then});
  }
  void after(Duration delay, Then then, std::int32_t who, std::uint32_t turn = 0) {
    at(now_ + delay.count(), then, who, turn);
  }
  /// How long this one takes.
  Ns some(Duration mean) {
    if (mean.count() <= 0) return 0;
    if (work_.spread <= 0) return mean.count();
    return static_cast<Ns>(static_cast<double>(mean.count()) *
                           (1 - work_.spread + work_.spread * random_.exponential()));
  }
  static Duration times(Duration time, double by) {
    return Duration(static_cast<Ns>(static_cast<double>(time.count()) * by));
  }
  Ns some_time(Duration mean) {
    if (work_.steady) return mean.count();
    return static_cast<Ns>(static_cast<double>(mean.count()) * random_.exponential());
  }

  void work(std::int8_t pool, Ns need, Then then, std::int32_t who, std::uint32_t turn = 0) {
    const Cores::Task task{.need = need,
                           .then = {.who = who, .turn = turn, .then = then, .pool = pool}};
    auto& cores = pools_[static_cast<std::size_t>(pool)];
    cores.worked(need);
    if (cores.start(task)) run_now(task);
  }
  void run_now(Cores::Task task) {
    task.then.at = now_ + task.need;
    agenda_.add(task.then);
  }
  void core_is_free(std::int8_t pool) {
    Cores::Task next;
    if (pools_[static_cast<std::size_t>(pool)].done(next)) run_now(next);
  }

  void handle(const Event& event) {
    switch (event.then) {
      case Then::ask:
        return begin_acquire(event.who);
      case Then::send:
        return send(event.who);
      case Then::arrive:
        return arrive(event.who);
      case Then::enter:
        return enter(event.who);
      case Then::served:
        return served(event.who);
      case Then::flushed:
        return flushed(event.who);
      case Then::reply:
        return work(0, some(client_ / 2), Then::answered, event.who);
      case Then::answered:
        return answered(event.who);
      case Then::wake:
        return wake(event.who, event.turn);
      case Then::nothing:
        return;
      case Then::beat:
        return beat(event.who, event.turn);
      case Then::give_back:
        return give_back(event.who);
      case Then::renew:
        return renew(event.who, event.turn);
      case Then::keep_alive:
        return keep_alive(event.who);
    }
  }

  // ---- a process -----------------------------------------------------------------------------

  Process& process(std::int32_t i) { return processes_[static_cast<std::size_t>(i)]; }
  Lock& lock(std::int32_t i) { return locks_[static_cast<std::size_t>(i)]; }

  void begin_acquire(std::int32_t who) {
    auto& p = process(who);
    p.lock = work_.locks == 0 ? who : pick_.pick(random_);
    p.shared = work_.shared > 0 && random_.uniform() < work_.shared;
    p.since = now_;
    ++p.turn;
    ask(who);
  }
  void ask(std::int32_t who) {
    auto& p = process(who);
    p.state = Process::State::asks;
    p.woken = false;
    ++p.asked;
    call(Ask::acquire, who, p.lock);
  }
  void wake(std::int32_t who, std::uint32_t turn) {
    auto& p = process(who);
    if (p.turn != turn) return;
    if (store_.woken.count() > 0) work(0, some(store_.woken), Then::nothing, who);
    if (p.state == Process::State::waits) return ask(who);
    if (p.state == Process::State::asks) p.woken = true;
  }
  void beat(std::int32_t who, std::uint32_t asked) {
    const auto& p = process(who);
    if (p.state == Process::State::waits && p.asked == asked) ask(who);
  }
  void give_back(std::int32_t who) {
    process(who).state = Process::State::gives;
    call(Ask::release, who, process(who).lock);
  }
  void renew(std::int32_t who, std::uint32_t turn) {
    const auto& p = process(who);
    if (p.turn != turn || p.state != Process::State::holds) return;
    call(Ask::renew, who, p.lock);
    after(work_.ttl / 3, Then::renew, who, turn);
  }
  [[nodiscard]] Ns keep_alive_every() const { return (work_.ttl / 3 / work_.leases).count(); }
  void keep_alive(std::int32_t who) {
    call(Ask::renew, who, random_.below(static_cast<int>(locks_.size())));
    at(now_ + keep_alive_every(), Then::keep_alive, who);
  }

  void answered(std::int32_t id) {
    const auto done = call_of(id);
    if (done.parts_left == 0) {
      free_calls_.push_back(id);
    } else {
      call_of(id).over = true;
    }
    longest_call_ = std::max(longest_call_, now_ - done.began);
    if (done.ask == Ask::renew) {
      latest_renewal_ = std::max(latest_renewal_, now_ - done.began);
      return;
    }
    auto& p = process(done.process);
    if (done.ask == Ask::release) {
      ++cycles_;
      p.state = Process::State::thinks;
      return at(now_ + some_time(work_.think), Then::ask, done.process);
    }
    if (done.granted) {
      p.state = Process::State::holds;
      waits_.add(Duration(now_ - p.since));
      const auto hold = some_time(work_.hold);
      if (hold > work_.ttl.count() / 3) after(work_.ttl / 3, Then::renew, done.process, p.turn);
      return at(now_ + hold, Then::give_back, done.process);
    }
    if (p.woken) return ask(done.process);
    p.state = Process::State::waits;
    const auto& row = lock(p.lock);
    const auto next = row.first == done.process            ? store_.first_beat
                      : p.in_line && p.before == row.first ? store_.second_beat
                                                           : store_.beat;
    after(next, Then::beat, done.process, p.asked);
  }

  // ---- a call --------------------------------------------------------------------------------

  Call& call_of(std::int32_t id) { return calls_[static_cast<std::size_t>(id)]; }
  std::int32_t new_call(const Call& call) {
    if (free_calls_.empty()) {
      calls_.push_back(call);
      return static_cast<std::int32_t>(calls_.size() - 1);
    }
    const auto id = free_calls_.back();
    free_calls_.pop_back();
    call_of(id) = call;
    return id;
  }
  void call(Ask ask, std::int32_t who, std::int32_t lock) {
    ++asked_;
    const auto id = new_call({.ask = ask, .process = who, .lock = lock, .began = now_});
    work(0, some(client_ - client_ / 2), Then::send, id);
  }
  void send(std::int32_t id) {
    if (store_.votes <= 1) {
      call_of(id).server = call_of(id).lock % static_cast<std::int32_t>(servers_.size());
      return after(store_.one_way, Then::arrive, id);
    }
    call_of(id).parts_left = store_.votes;
    for (int i = 0; i < store_.votes; ++i) {
      auto part = call_of(id);
      part.server = i;
      part.whole = id;
      after(store_.one_way, Then::arrive, new_call(part));
    }
  }
  [[nodiscard]] GateState* gate_of(const Call& call) {
    if (store_.gate == Gate::none) return nullptr;
    return &gates_[static_cast<std::size_t>(call.lock) % gates_.size()];
  }
  void arrive(std::int32_t id) {
    auto* gate = gate_of(call_of(id));
    if (gate == nullptr) return enter(id);
    if (gate->shut) {
      (gate->last == kNobody ? gate->first : call_of(gate->last).next) = id;
      gate->last = id;
      ++gate->waiting;
      return;
    }
    shut(*gate);
    enter(id);
  }
  void shut(GateState& gate) const {
    gate.shut = true;
    gate.shut_since = now_;
  }
  void leave_gate(const Call& call) {
    auto* gate = gate_of(call);
    if (gate == nullptr) return;
    gate->busy += now_ - std::max(gate->shut_since, measured_from_);
    gate->shut = false;
    if (gate->waiting == 0) return;
    const auto next = gate->first;
    gate->first = call_of(next).next;
    if (gate->first == kNobody) gate->last = kNobody;
    shut(*gate);
    // The more there are who look now and then, the sooner one of them does.
    after(store_.gate_poll / (1 + gate->waiting--), Then::enter, next);
  }
  void enter(std::int32_t id) {
    auto& server = servers_[static_cast<std::size_t>(call_of(id).server)];
    if (store_.threads > 0 && server.working >= store_.threads) return server.calls.push_back(id);
    begin(server, id);
  }
  void begin(Server& server, std::int32_t id) {
    auto& c = call_of(id);
    // Of a call to several servers, the first one to see it tells.
    const bool told = c.whole != kNobody && call_of(c.whole).seen;
    c.step = told ? call_of(c.whole).step : step_of(c);
    if (c.whole != kNobody && !told) {
      call_of(c.whole).step = c.step;
      call_of(c.whole).seen = true;
    }
    const auto& cost = store_.cost(c.step);
    const auto others = records(c.lock);
    auto mean = cost.fixed + cost.per_record * others;
    if (cost.per_doubling.count() > 0)
      mean += times(cost.per_doubling, std::log2(1 + static_cast<double>(others)));
    const auto need = some(times(mean, crowding_));
    ++server.working;
    server.busy += need;
    work(server.pool, need, Then::served, id);
  }
  void served(std::int32_t id) {
    auto& server = servers_[static_cast<std::size_t>(call_of(id).server)];
    --server.working;
    if (!server.calls.empty()) {
      const auto next = server.calls.front();
      server.calls.pop_front();
      begin(server, next);
    } else if (server.working == 0 && store_.idle.count() > 0) {
      work(server.pool, some(store_.idle), Then::nothing, id);
    }
    if (!store_.cost(call_of(id).step).logged || store_.flush.count() == 0) return decided(id);
    server.logged.push_back(id);
    if (!server.flushing) flush(call_of(id).server);
  }
  void flush(std::int32_t which) {
    auto& server = servers_[static_cast<std::size_t>(which)];
    server.flushing = true;
    server.batch.swap(server.logged);
    const auto time = some(store_.flush);
    server.flush_busy += time;
    at(now_ + time, Then::flushed, which);
  }
  void flushed(std::int32_t which) {
    auto& server = servers_[static_cast<std::size_t>(which)];
    auto batch = std::move(server.batch);
    server.batch.clear();
    for (const auto id : batch) decided(id);
    server.flushing = false;
    if (!server.logged.empty()) flush(which);
  }

  // A server is done with it: of several, the majority.
  void decided(std::int32_t id) {
    const auto part = call_of(id);
    leave_gate(part);
    if (part.whole == kNobody) {
      decide(id);
      return after(store_.one_way, Then::reply, id);
    }
    free_calls_.push_back(id);
    auto& whole = call_of(part.whole);
    if (--whole.parts_left == 0 && whole.over) free_calls_.push_back(part.whole);
    if (++whole.answers == store_.votes / 2 + 1) {
      decide(part.whole);
      after(store_.one_way, Then::reply, part.whole);
    }
  }

  // ---- the lock ------------------------------------------------------------------------------

  /// As it looks when the server begins; what comes of it is decided when it ends.
  [[nodiscard]] Step step_of(const Call& call) {
    const auto& row = lock(call.lock);
    if (call.ask == Ask::renew) return Step::renew;
    if (call.ask == Ask::release) return row.waiting > 0 ? Step::pass : Step::free;
    const bool fits = may_have(call.process);
    if (process(call.process).in_line) return fits ? Step::claim : Step::beat;
    return fits ? Step::take : Step::join;
  }
  [[nodiscard]] Ns records(std::int32_t of) {
    if (!records_.empty()) return records_[static_cast<std::size_t>(of) % kShards];
    return lock(of).holders + lock(of).waiting;
  }
  void count_records(std::int32_t of, int more) {
    if (!records_.empty()) records_[static_cast<std::size_t>(of) % kShards] += more;
  }

  [[nodiscard]] bool may_have(std::int32_t who) {
    const auto& p = process(who);
    const auto& row = lock(p.lock);
    if (row.holders > 0 && (row.exclusive || !p.shared)) return false;
    if (!p.in_line) return p.shared ? row.waiting_alone == 0 : row.waiting == 0;
    if (!p.shared) return row.first == who;
    for (auto i = p.before; i != kNobody; i = process(i).before) {
      if (!process(i).shared) return false;
    }
    return true;
  }

  void decide(std::int32_t id) {
    auto& c = call_of(id);
    if (c.ask == Ask::release) return release(c);
    if (c.ask == Ask::renew) return;
    c.granted = may_have(c.process);
    auto& p = process(c.process);
    p.told = false;
    if (!c.granted) {
      if (!p.in_line) join(c.process);
      return;
    }
    auto& row = lock(p.lock);
    const bool waited = p.in_line;
    if (waited) leave_line(c.process);
    if (row.holders + row.waiting == 0) row.busy_since = now_;
    ++row.holders;
    row.exclusive = !p.shared;
    count_records(p.lock, 1);
    tell(Happening::What::granted, c.process);
    if (waited && store_.next_looks && row.first != kNobody) tell_waiter(row.first);
  }
  void join(std::int32_t who) {
    auto& p = process(who);
    auto& row = lock(p.lock);
    p.in_line = true;
    p.before = row.last;
    p.next = kNobody;
    (row.last == kNobody ? row.first : process(row.last).next) = who;
    row.last = who;
    ++row.waiting;
    if (!p.shared) ++row.waiting_alone;
    count_records(p.lock, 1);
    tell(Happening::What::queued, who);
  }
  void leave_line(std::int32_t who) {
    auto& p = process(who);
    auto& row = lock(p.lock);
    (p.before == kNobody ? row.first : process(p.before).next) = p.next;
    (p.next == kNobody ? row.last : process(p.next).before) = p.before;
    p.in_line = false;
    p.before = p.next = kNobody;
    --row.waiting;
    if (!p.shared) --row.waiting_alone;
    count_records(p.lock, -1);
  }
  void release(const Call& call) {
    auto& row = lock(call.lock);
    --row.holders;
    count_records(call.lock, -1);
    tell(Happening::What::released, call.process);
    if (row.holders > 0) return;
    if (row.waiting == 0) {
      row.busy += now_ - std::max(row.busy_since, measured_from_);
      return;
    }
    tell_waiter(row.first);
    for (auto i = row.first; process(i).shared;) {
      i = process(i).next;
      if (i == kNobody || !process(i).shared) break;
      tell_waiter(i);
    }
  }
  // Once; when it has looked, the next change is told.
  void tell_waiter(std::int32_t who) {
    if (std::exchange(process(who).told, true)) return;
    ++told_;
    after(store_.one_way + store_.push, Then::wake, who, process(who).turn);
  }
  void tell(Happening::What what, std::int32_t who) {
    if (watch_)
      watch_({.what = what,
              .at = Duration(now_),
              .process = who,
              .lock = process(who).lock,
              .shared = process(who).shared});
  }

  // ---- what was seen -------------------------------------------------------------------------

  void begin_measuring() {
    measured_from_ = now_;
    waits_ = {};
    cycles_ = asked_ = told_ = 0;
    longest_call_ = latest_renewal_ = 0;
    for (auto& pool : pools_) pool.forget();
    for (auto& server : servers_) server.busy = server.flush_busy = 0;
    for (auto& gate : gates_) gate.busy = 0;
    for (auto& row : locks_) row.busy = 0;
  }

  [[nodiscard]] Prediction result() {
    Prediction seen;
    const auto time = static_cast<double>(work_.duration.count());
    // What still waits for a core was counted, too.
    const auto load = [&](Ns busy, int at_once = 1) {
      return std::min(1.0, static_cast<double>(busy) / time / at_once);
    };
    const auto per_cycle = [&](std::uint64_t count) {
      return cycles_ == 0 ? 0 : static_cast<double>(count) / static_cast<double>(cycles_);
    };
    seen.cycles = cycles_;
    seen.cycles_per_second = static_cast<double>(cycles_) / time * 1e9;
    seen.mean_wait = waits_.mean();
    seen.median_wait = waits_.quantile(0.5);
    seen.p99_wait = waits_.quantile(0.99);
    seen.longest_wait = waits_.most();
    seen.calls_per_cycle = per_cycle(asked_);
    seen.wakes_per_cycle = per_cycle(told_);
    seen.messages_per_second = static_cast<double>(asked_ + told_) / time * 1e9;
    for (const auto& server : servers_) {
      const int at_once = store_.threads > 0                       ? store_.threads
                          : work_.one_machine || store_.on_clients ? work_.client_cores
                                                                   : store_.cores;
      if (at_once > 0) seen.server_load = std::max(seen.server_load, load(server.busy, at_once));
      seen.log_load = std::max(seen.log_load, load(server.flush_busy));
    }
    if (store_.on_clients) seen.server_load = 0;
    if (work_.client_cores > 0) seen.client_load = load(pools_.front().busy(), work_.client_cores);
    for (auto& gate : gates_) {
      if (gate.shut) gate.busy += now_ - std::max(gate.shut_since, measured_from_);
      seen.gate_load = std::max(seen.gate_load, load(gate.busy));
    }
    for (auto& row : locks_) {
      if (row.holders + row.waiting > 0)
        row.busy += now_ - std::max(row.busy_since, measured_from_);
      seen.lock_load = std::max(seen.lock_load, load(row.busy));
    }
    seen.longest_call = Duration(longest_call_);
    seen.latest_renewal = Duration(latest_renewal_);
    seen.events = agenda_.events();
    return seen;
  }

  const Store& store_;
  const Workload& work_;
  const Watch& watch_;
  double crowding_ = 1;  // what a call costs more than with few processes
  Duration client_{};
  Random random_;
  Zipf pick_;
  Agenda agenda_{};
  Ns now_ = 0;
  Ns measured_from_ = 0;
  std::vector<Process> processes_;
  std::vector<Lock> locks_;
  std::vector<GateState> gates_;
  std::vector<Server> servers_;
  std::vector<Cores> pools_{};
  std::vector<Ns> records_{};  // of each shard
  std::vector<Call> calls_{};
  std::vector<std::int32_t> free_calls_{};
  Histogram waits_{};
  std::uint64_t cycles_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t told_ = 0;
  Ns longest_call_ = 0;
  Ns latest_renewal_ = 0;
};

}  // namespace

Prediction predict(const Store& store, const Workload& workload, const Watch& watch) {
  return Simulation(store, workload, watch).run();
}

std::string limit(const Prediction& seen) {
  constexpr double kFull = 0.9;
  const auto most = std::max({seen.server_load, seen.log_load, seen.client_load, seen.gate_load});
  if (most >= kFull) {
    if (seen.server_load == most) return "the server's CPU";
    if (seen.log_load == most && seen.lock_load < kFull) return "the disk";
    if (seen.client_load == most) return "the clients' CPU";
  }
  if (seen.lock_load >= kFull) return "the lock";
  if (most >= kFull) return seen.log_load == most ? "the disk" : "one file";
  return "nothing";
}

}  // namespace cli::scale
