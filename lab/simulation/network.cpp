#include "network.hpp"

#include "trace.hpp"

#include <algorithm>
#include <utility>

namespace simulation {

using interlock::Errc;
using interlock::Error;

namespace {

constexpr Duration kFirstRetry = 10ms;
constexpr Duration kLongestRetry = 1s;

}  // namespace

Host::Host(World& world, std::size_t clients, OwnClock clock, Node::Tell tell)
    : world_(world), clock_(clock), node_(std::move(tell)), peers_(clients) {
  node_.restart(Node::Restart::empty, epoch_);
}

void Host::arrive(std::function<void()> what) {
  if (down_) return;
  if (!stopped_) return what();
  inbox_.push_back(std::move(what));
}

void Host::go_on() {
  if (!std::exchange(stopped_, false)) return;
  for (const auto& each : std::exchange(inbox_, {})) each();
}

void Host::kill() {
  down_ = true;
  stopped_ = false;
  inbox_.clear();
  ++epoch_;
  for (auto& peer : peers_) peer = {};
}

void Host::start(Node::Restart how) {
  if (!std::exchange(down_, false)) return;
  node_.restart(how, epoch_);
  scripts_ = 0;
}

Wire::Wire(World& world, const Weather& weather, Host& host, Owner& owner, std::size_t client,
           std::size_t node, Duration call_timeout)
    : world_(world),
      weather_(weather),
      host_(host),
      owner_(owner),
      client_(client),
      node_(node),
      call_timeout_(call_timeout) {}

Duration Wire::delay() { return world_.random.between(weather_.least, weather_.most + lag_); }

void Wire::to_host(std::function<void()> what) {
  last_there_ = std::max(last_there_ + 1us, world_.now() + delay());
  world_.at(last_there_, [this, what = std::move(what)]() mutable {
    if (parted_there_) return held_there_.push_back(std::move(what));
    host_.arrive(std::move(what));
  });
}

void Wire::to_client(std::uint64_t connection, std::function<void()> what) {
  last_back_ = std::max(last_back_ + 1us, world_.now() + delay());
  auto arrives = [this, connection, what = std::move(what)] {
    owner_.run([this, connection, what] {
      if (connection == connection_) what();
    });
  };
  world_.at(last_back_, [this, arrives = std::move(arrives)]() mutable {
    if (parted_back_) return held_back_.push_back(std::move(arrives));
    arrives();
  });
}

void Wire::send(RedlockCalls::Actions::Send send) {
  if (send.deadline <= owner_.now()) {
    return world_.in(0ms, [this, letter = send.letter] {
      owner_.run([this, letter] { fail(letter, "no connection in time", false); });
    });
  }
  if (state_ == State::up) return put(send.letter, std::move(send.message), false);
  waiting_.push_back(std::move(send));
  if (state_ == State::down) connect();
  watch(waiting_.back().deadline - owner_.now());
}

void Wire::connect() {
  if (closed_ || dialing_) return;
  if (const auto wait = retry_at_ - owner_.now(); wait > Duration::zero()) {
    dialing_ = true;
    world_.in(wait, [this] {
      owner_.run([this] {
        dialing_ = false;
        if (state_ == State::down && !waiting_.empty()) connect();
      });
    });
    return;
  }
  state_ = State::connecting;
  const auto connection = ++connection_;
  if (host_.down() && !parted_there_) {
    world_.in(weather_.most, [this, connection] {
      owner_.run([this, connection] {
        if (connection == connection_) drop("connection refused");
      });
    });
  }
  to_host([this, connection] {
    if (connection <= undelivered_) return;
    host_epoch_ = host_.epoch();
    auto& peer = host_.peer(client_);
    if (peer.connection > connection) return;
    peer.connection = connection;
    host_.learn_all();
    to_client(connection, [this] { greeted(); });
  });
  world_.in(call_timeout_ + 1ms, [this, connection] {
    owner_.run([this, connection] {
      if (connection == connection_ && state_ == State::connecting)
        drop("no connection within its time");
    });
  });
}

void Wire::greeted() {
  if (state_ != State::connecting) return;
  state_ = State::up;
  pause_ = {};
  for (auto& send : std::exchange(waiting_, {})) put(send.letter, std::move(send.message), false);
}

void Wire::put(std::uint64_t letter, Message message, bool in_full) {
  sent_.push_back({.letter = letter, .message = message, .at = owner_.now()});
  to_host([this, connection = connection_, letter, message = std::move(message), in_full] {
    serve(connection, letter, message, in_full);
  });
  if (sent_.size() == 1) watch(call_timeout_);
}

void Wire::serve(std::uint64_t connection, std::uint64_t letter, const Message& message,
                 bool in_full) {
  if (host_.peer(client_).connection != connection || connection <= undelivered_) return;
  if (!in_full && !host_.knows(message.kind))
    return to_client(connection, [this, letter] { unknown_script(letter); });
  host_.learn(message.kind);
  auto vote = host_.node().serve(message, client_, host_.clock());
  if (weather_.doubled != 0 && world_.random.one_in(weather_.doubled))
    (void)host_.node().serve(message, client_, host_.clock());
  world_.trace([&] {
    return "node " + std::to_string(node_) + " serves client " + std::to_string(client_) + ": " +
           describe(message) + " -> " + describe(vote);
  });
  to_client(connection,
            [this, letter, vote = std::move(vote)]() mutable { reply(letter, std::move(vote)); });
}

void Wire::reply(std::uint64_t letter, Vote vote) {
  if (sent_.empty()) return;
  sent_.pop_front();
  if (!sent_.empty()) watch(sent_.front().at + call_timeout_ - owner_.now());
  owner_.heard(letter, node_, std::move(vote));
}

// It goes out again behind everything that was sent since.
void Wire::unknown_script(std::uint64_t letter) {
  if (sent_.empty()) return;
  auto sent = std::move(sent_.front());
  sent_.pop_front();
  if (owner_.may_send(letter)) return put(letter, std::move(sent.message), true);
  fail(letter, "released meanwhile", false);
}

void Wire::watch(Duration after) {
  world_.in(std::max(after, Duration::zero()) + 1ms, [this] {
    owner_.run([this] {
      const auto now = owner_.now();
      if (!sent_.empty() && now >= sent_.front().at + call_timeout_)
        return drop("the server does not answer");
      for (auto it = waiting_.begin(); it != waiting_.end();) {
        if (it->deadline > now) {
          ++it;
          continue;
        }
        const auto letter = it->letter;
        it = waiting_.erase(it);
        return fail(letter, "no connection in time", false), watch({});
      }
    });
  });
}

void Wire::fail(std::uint64_t letter, const std::string& why, bool sent) {
  owner_.heard(
      letter, node_,
      Vote::failed(Error(Errc::unreachable, why, {.resource = {}, .node = {}, .maybe_held = sent}),
                   sent));
}

void Wire::drop(const std::string& why) {
  state_ = State::down;
  ++connection_;  // replies on the connection before are dropped from here on
  pause_ = std::clamp(pause_ * 2, kFirstRetry, kLongestRetry);
  retry_at_ = owner_.now() + world_.random.between(pause_ / 2, pause_);
  auto sent = std::exchange(sent_, {});
  auto waiting = std::exchange(waiting_, {});
  for (const auto& each : sent) fail(each.letter, why, true);
  for (const auto& each : waiting) fail(each.letter, why, false);
}

bool Wire::listen() {
  if (listens_) return true;
  if (std::exchange(subscribing_, true)) return false;
  to_host([this] {
    if (host_.down()) return;
    host_.peer(client_).listens = true;
    world_.in(weather_.most, [this] {
      owner_.run([this] {
        subscribing_ = false;
        if (!host_.peer(client_).listens || closed_) return;
        listens_ = true;
        owner_.hears(node_);
      });
    });
  });
  world_.in(2s, [this] { subscribing_ = false; });
  return false;
}

bool Wire::publish(const interlock::Owner& owner) {
  if (closed_ || !host_.peer(client_).listens) return false;
  world_.in(world_.random.between(weather_.least, weather_.most), [this, owner] {
    if (parted_back_) return;  // a hint that is lost
    owner_.run([this, owner] { owner_.turn(owner, node_); });
  });
  return true;
}

void Wire::part(bool there, bool back) {
  parted_there_ = parted_there_ || there;
  parted_back_ = parted_back_ || back;
}

void Wire::join() {
  parted_there_ = parted_back_ = false;
  for (auto& each : std::exchange(held_there_, {})) host_.arrive(std::move(each));
  for (auto& each : std::exchange(held_back_, {})) each();
}

void Wire::cut(bool delivers) {
  if (!delivers) undelivered_ = connection_;
  listens_ = false;
  host_.peer(client_).listens = false;
  restarted();
}

void Wire::restarted() {
  listens_ = false;
  const auto connection = connection_;
  world_.in(world_.random.between(0ms, 50ms), [this, connection] {
    owner_.run([this, connection] {
      if (connection == connection_ && state_ != State::down)
        drop("the server closed the connection");
    });
  });
}

}  // namespace simulation
