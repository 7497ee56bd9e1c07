#include "backends/etcd/lane.hpp"

#include <utility>

namespace interlock::etcd {

void Lane::enter(const std::string& resource, const Owner& owner, Ask ask) {
  {
    const std::lock_guard lock(mutex_);
    const auto [it, here] = places_.try_emplace(owner);
    auto& place = it->second;
    if (here) {
      place.resource = resource;
      const auto [line, free] = lines_.try_emplace(resource);
      place.number = line->second.entered++;
      if (free) {
        place.turn = Turn::first;
      } else {
        line->second.all.emplace_back(place.number, owner);
      }
    }
    if (place.turn == Turn::waits) {
      place.ask = std::move(ask);
      lines_.at(place.resource).asking.push_back(owner);
      return;
    }
    place.on_its_way = true;
  }
  ask.go();
}

bool Lane::knows(const Owner& owner) const {
  const std::lock_guard lock(mutex_);
  return places_.contains(owner);
}

void Lane::leave(const Owner& owner, Left how) { leave(owner, how, true); }

void Lane::drop(const Owner& owner) { leave(owner, Left::answered, false); }

void Lane::leave(const Owner& owner, Left how, bool on_its_way) {
  Work work;
  // What goes, goes without the mutex: it may be the last to know of whoever asked.
  Place place;
  std::vector<Ask> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto it = places_.find(owner);
    if (it == places_.end() || it->second.on_its_way != on_its_way) return;
    place = std::move(it->second);
    places_.erase(it);
    if (place.turn != Turn::first) return;
    const auto line = lines_.find(place.resource);
    work =
        how == Left::unanswered ? let_all_through(line) : next(line, how == Left::answered, gone);
  }
  for (const auto& one : work) one();
}

Lane::Place* Lane::waiting(std::uint32_t number, const Owner& owner) {
  const auto it = places_.find(owner);
  return it != places_.end() && it->second.number == number ? &it->second : nullptr;
}

std::function<void()> Lane::call(Place& place, Turn turn, const Owner& owner) {
  place.turn = turn;
  auto ask = std::exchange(place.ask, {});
  place.on_its_way = ask.go != nullptr;
  if (place.on_its_way) return ask.go;
  return [this, owner] { wake_(owner); };
}

std::optional<std::pair<std::uint32_t, Owner>> Lane::pop(Line& line, std::vector<Ask>& gone) {
  const auto now = BootClock::now();
  while (!line.all.empty()) {
    const auto one = line.all.front();
    line.all.pop_front();
    auto* place = waiting(one.first, one.second);
    if (place == nullptr) continue;
    if (now < place->ask.until) return one;
    gone.push_back(std::move(place->ask));
    places_.erase(one.second);
  }
  return {};
}

Lane::Work Lane::next(Lines::iterator line, bool tell, std::vector<Ask>& gone) {
  const auto one = pop(line->second, gone);
  if (!one) {
    lines_.erase(line);
    return {};
  }
  const auto& [first, next_owner] = *one;
  Work work{call(places_.at(next_owner), Turn::first, next_owner)};
  if (!tell) return work;
  for (const auto& owner : std::exchange(line->second.asking, {})) {
    const auto it = places_.find(owner);
    if (it == places_.end()) continue;
    if (auto ask = std::exchange(it->second.ask, {}); ask.wait)
      work.push_back(
          [wait = std::move(ask.wait), behind = it->second.number - first] { wait(behind); });
  }
  return work;
}

Lane::Work Lane::let_all_through(Lines::iterator line) {
  Work work;
  for (const auto& [number, owner] : line->second.all) {
    if (auto* place = waiting(number, owner))
      work.push_back(call(*place, Turn::let_through, owner));
  }
  lines_.erase(line);
  return work;
}

}  // namespace interlock::etcd
