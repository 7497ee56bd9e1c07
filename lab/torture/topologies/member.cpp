#include "torture/topologies/member.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <list>
#include <stdexcept>
#include <thread>

#include "servers/process.hpp"

namespace torture {

void Member::take_down() {
  const std::lock_guard lock(mutex_);
  if (down_++ != 0) return;
  if (frozen_ > 0) handling_.signal(SIGCONT);
  handling_.kill();
}

void Member::bring_back() {
  const std::lock_guard lock(mutex_);
  if (--down_ == 0) handling_.start();
}

void Member::wait() const {
  if (answers()) handling_.wait();
}

void Member::freeze() {
  const std::lock_guard lock(mutex_);
  if (frozen_++ == 0 && is_up()) handling_.signal(SIGSTOP);
}

void Member::thaw() {
  const std::lock_guard lock(mutex_);
  if (--frozen_ == 0 && is_up()) handling_.signal(SIGCONT);
}

void Member::awake(const std::function<void()>& what) const {
  const std::lock_guard lock(mutex_);
  if (!is_up()) return;
  if (frozen_ > 0) handling_.signal(SIGCONT);
  what();
  if (frozen_ > 0) handling_.signal(SIGSTOP);
}

void Member::check_answers() const {
  if (!is_up()) throw std::runtime_error(name_ + " is down");
  if (frozen_ > 0) throw std::runtime_error(name_ + " is stopped");
}

void Member::restart(const std::function<void()>& between) {
  check_answers();
  take_down();
  between();
  bring_back();
  wait();
}

Fault fault_of(Nature nature, std::function<std::string(Random&)> begin,
               std::function<void()> heal) {
  return {.name = std::move(nature.name),
          .voids = nature.voids,
          .disturbs = nature.disturbs,
          .brings_back = nature.brings_back,
          .begin = std::move(begin),
          .heal = std::move(heal),
          .at_least = nature.at_least};
}

Fault of_all(Nature nature, std::function<void(Random&)> begin, std::function<void()> heal) {
  if (!heal) heal = [] {};
  return fault_of(
      std::move(nature),
      [begin = std::move(begin)](Random& random) {
        begin(random);
        return std::string();
      },
      std::move(heal));
}

Fault killed(Nature nature, const Members& members) {
  return one_of<Member>(
      std::move(nature), members, [](Member& member, Random&) { member.take_down(); },
      [](Member& member) {
        member.bring_back();
        member.wait();
      });
}

Fault killed_but(Nature nature, const Members& members, std::size_t left) {
  auto chosen = std::make_shared<Members>();
  return fault_of(
      std::move(nature),
      [members, left, chosen](Random& random) {
        *chosen = members;
        std::shuffle(chosen->begin(), chosen->end(), random);
        chosen->resize(chosen->size() - left);
        std::string names;
        for (auto* member : *chosen) {
          member->take_down();
          names += (names.empty() ? "" : ", ") + member->name();
        }
        return names;
      },
      [chosen] {
        for (auto* member : *chosen) member->bring_back();
        for (const auto* member : *chosen) member->wait();
        chosen->clear();
      });
}

Fault frozen(Nature nature, const Members& members) {
  return one_of<Member>(
      std::move(nature), members, [](Member& member, Random&) { member.freeze(); },
      [](Member& member) { member.thaw(); });
}

Fault restarted(Nature nature, const Members& members,
                const std::function<void(Member&)>& between) {
  return one_of<Member>(
      std::move(nature), members,
      [between](Member& member, Random&) {
        member.restart([&] {
          if (between) between(member);
        });
      },
      [](Member&) {});
}

void Healing::begin(std::function<void()> what) {
  *thread_ = std::jthread([what = std::move(what)](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      try {
        return what();
      } catch (const std::exception&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
  });
}

namespace {

void stop_and_go(Member& member, Random random, const std::stop_token& stop) {
  using std::chrono::milliseconds;
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  const auto pause = [&](std::int64_t least, std::int64_t most) {
    const milliseconds time(std::uniform_int_distribution<std::int64_t>(least, most)(random));
    never.wait_for(lock, stop, time, [] { return false; });
  };
  while (!stop.stop_requested()) {
    member.freeze();
    pause(300, 1500);
    member.thaw();
    pause(50, 300);
  }
}

}  // namespace

Fault flapping(const Members& members, Nature nature) {
  nature.name = "stops and goes on, over and over";
  auto thread = std::make_shared<std::jthread>();
  return one_of<Member>(
      std::move(nature), members,
      [thread](Member& member, Random& random) {
        *thread = std::jthread([&member, random = Random(random())](const std::stop_token& stop) {
          stop_and_go(member, random, stop);
        });
      },
      [thread](Member&) { *thread = {}; });
}

Fault busy_processors(Nature nature) {
  nature.name = "busy processors";
  using interlock::servers::Process;
  auto busy = std::make_shared<std::list<Process>>();
  return of_all(
      std::move(nature),
      [busy](Random&) {
        const auto processors = std::max(1U, std::thread::hardware_concurrency());
        for (unsigned i = 0; i <= std::min(processors, 16U); ++i)
          busy->emplace_back(std::vector<std::string>{"sh", "-c", "while :; do :; done"},
                             "/dev/null");
      },
      [busy] { busy->clear(); });
}

}  // namespace torture
