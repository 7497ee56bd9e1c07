#include "torture/topologies/etcd_replacement.hpp"

#include <chrono>
#include <sstream>
#include <stdexcept>

#include "eventually.hpp"

namespace torture {

using namespace std::chrono_literals;

EtcdReplacement::EtcdReplacement(EtcdMembers members)
    : members_(std::move(members)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

const EtcdMember& EtcdReplacement::another() const {
  for (const auto* member : members_) {
    if (member != removed_ && member->answers()) return *member;
  }
  throw std::runtime_error("no other member answers");
}

std::string EtcdReplacement::id() const {
  std::istringstream lines(another().tell({"member", "list"}));
  for (std::string line; std::getline(lines, line);) {
    if (line.find(removed_->server().peer_url() + ",") != std::string::npos)
      return line.substr(0, line.find(','));
  }
  return "";
}

void EtcdReplacement::remove(EtcdMember& member) {
  const std::lock_guard lock(mutex_);
  if (removed_ != nullptr) throw std::runtime_error(removed_->name() + " is not replaced yet");
  for (const auto* each : members_) each->check_answers();
  removed_ = &member;
  member.take_down();
  // The others believe for a moment that it is still there, and that they are too few without it.
  std::string why = "it was not removed";
  if (interlock::testing_support::eventually(
          [&] {
            try {
              if (const auto its = id(); !its.empty()) another().tell({"member", "remove", its});
              return true;
            } catch (const std::exception& error) {
              why = error.what();
              return false;
            }
          },
          5s))
    return;
  wanted_ = true;
  changed_.notify_all();
  throw std::runtime_error(why);
}

void EtcdReplacement::add_again() {
  const std::lock_guard lock(mutex_);
  wanted_ = removed_ != nullptr;
  changed_.notify_all();
}

void EtcdReplacement::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return wanted_; }) && !stop.stop_requested()) {
    lock.unlock();
    bool done = false;
    try {
      try_to_add();
      done = true;
    } catch (const std::exception&) {
      // Again, in a moment.
    }
    lock.lock();
    if (done) {
      wanted_ = false;
      removed_->bring_back();
      removed_ = nullptr;
    } else {
      changed_.wait_for(lock, stop, 200ms, [] { return false; });
    }
  }
}

// What an earlier try has begun is undone first: its member may have joined in part.
void EtcdReplacement::try_to_add() {
  auto& server = removed_->server();
  if (const auto its = id(); !its.empty()) another().tell({"member", "remove", its});
  another().tell({"member", "add", server.name(), "--peer-urls=" + server.peer_url()});
  server.join();
  // It listens before it has heard anything of the others; asked for its health, it asks them.
  const bool joined = interlock::testing_support::eventually(
      [&] {
        return server.process().over() ||
               server.ctl({"endpoint", "health"}).find("is healthy") != std::string::npos;
      },
      20s);
  if (!joined || server.process().over()) {
    server.stop();
    throw std::runtime_error(removed_->name() + " does not join");
  }
  // It is started again as every member is, if no other fault keeps it down.
  server.stop(SIGTERM);
}

}  // namespace torture
