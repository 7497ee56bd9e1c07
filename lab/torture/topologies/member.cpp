#include "torture/topologies/member.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <list>
#include <stdexcept>
#include <thread>

#include "servers/process.hpp"

namespace torture {

void Member::take_down() {
  if (down_++ != 0) return;
  if (frozen_ > 0) handling_.signal(SIGCONT);
  handling_.kill();
}

void Member::bring_back() {
  if (--down_ == 0) handling_.start();
}

void Member::wait() const {
  if (is_up() && frozen_ == 0) handling_.wait();
}

void Member::freeze() {
  if (frozen_++ == 0 && is_up()) handling_.signal(SIGSTOP);
}

void Member::thaw() {
  if (--frozen_ == 0 && is_up()) handling_.signal(SIGCONT);
}

void Member::awake(const std::function<void()>& what) const {
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

Fault of_all(Nature nature, std::function<void(Random&)> begin, std::function<void()> heal) {
  if (!heal) heal = [] {};
  return {.name = std::move(nature.name),
          .voids = nature.voids,
          .disturbs = nature.disturbs,
          .brings_back = nature.brings_back,
          .begin =
              [begin = std::move(begin)](Random& random) {
                begin(random);
                return std::string();
              },
          .heal = std::move(heal)};
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
  return {.name = std::move(nature.name),
          .voids = nature.voids,
          .disturbs = nature.disturbs,
          .begin =
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
          .heal =
              [chosen] {
                for (auto* member : *chosen) member->bring_back();
                for (const auto* member : *chosen) member->wait();
                chosen->clear();
              }};
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

Fault busy_processors(bool voids) {
  using interlock::servers::Process;
  auto busy = std::make_shared<std::list<Process>>();
  return of_all(
      {.name = "busy processors", .voids = voids},
      [busy](Random&) {
        const auto processors = std::max(1U, std::thread::hardware_concurrency());
        for (unsigned i = 0; i <= std::min(processors, 16U); ++i)
          busy->emplace_back(std::vector<std::string>{"sh", "-c", "while :; do :; done"},
                             "/dev/null");
      },
      [busy] { busy->clear(); });
}

void append(std::vector<Fault>& to, std::vector<Fault> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

}  // namespace torture
