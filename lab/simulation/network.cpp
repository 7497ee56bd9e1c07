#include "network.hpp"

#include "trace.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace simulation {

using interlock::redis::to_error;

namespace {

// As in Server: a waiter asks every second.
constexpr auto kListenTimeout = 2s;
constexpr auto kWantedFor = 5s;

std::string text_of(const redisReply& reply) {
  return std::string(interlock::redis::text_of(reply));
}

template <class Number>
std::string raw(Number number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
  return bytes;
}

std::string end_of(const redisReply& info) {
  const auto number = text_of(info);
  return number.empty()
             ? number
             : Command{.kind = Command::Kind::kill, .number = std::stoull(number)}.bytes();
}

// Nothing if it is an error, as in Server.
std::string run_of(const redisReply& info) {
  return interlock::redis::is_error(info) ? std::string() : text_of(info);
}

}  // namespace

Host::Host(World& world, std::size_t clients, OwnClock clock, Node::Tell tell)
    : world_(world), clock_(clock), node_(std::move(tell)), peers_(clients * 2) {
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

void Host::heal() {
  go_on();
  refuses_until_ = turns_away_until_ = {};
}

Wire::Wire(World& world, const Path::Weather& weather, Host& host, Owner& owner, std::size_t client,
           std::size_t node, Duration call_timeout)
    : path_{.world = world, .weather = weather, .host = host},
      owner_(owner),
      client_(client),
      node_(node),
      call_timeout_(call_timeout),
      commands_(path_, owner, for_commands()),
      messages_(path_, owner, for_messages()) {}

LinkMachine::Plan Wire::link(std::vector<Greeting> greetings) const {
  LinkMachine::Plan plan{.name = "node " + std::to_string(node_),
                         .endpoint = {.host = "simulated"}};
  plan.access.connect_timeout = plan.access.call_timeout = call_timeout_;
  plan.greetings = std::move(greetings);
  return plan;
}

Connection::Plan Wire::for_commands() {
  using Kind = Command::Kind;
  return {.link = link({{.bytes = Command{.kind = Kind::info}.bytes(), .end = end_of},
                        {.bytes = Command{.kind = Kind::load}.bytes()},
                        {.bytes = Command{.kind = Kind::run}.bytes(), .stamp = run_of}}),
          .peer = client_ * 2,
          .serve = [this](auto connection, auto command) { return serve(connection, command); }};
}

Connection::Plan Wire::for_messages() {
  auto plan = link({{.bytes = Command{.kind = Command::Kind::subscribe}.bytes(), .must = true}});
  plan.access.connect_timeout = std::min<Duration>(plan.access.connect_timeout, kListenTimeout);
  plan.messages = true;
  return {.link = std::move(plan),
          .peer = client_ * 2 + 1,
          .serve = [this](auto connection, auto command) { return serve(connection, command); },
          .keep_open = [this] { return owner_.now() < wanted_until_; },
          .on_open = [this] { owner_.hears(node_); },
          .on_message = [this](const Reply& reply) { owner_.turn(reply.turn, node_); }};
}

void Wire::send(RedlockCalls::Actions::Send send) {
  post({.number = send.letter,
        .message = std::move(send.message),
        .deadline = send.deadline,
        .in_full = false});
}

void Wire::post(Letter letter) {
  const auto number = letters_.size();
  letters_.push_back(std::move(letter));
  commands_.add({.bytes = Command{.number = number}.bytes(),
                 .deadline = letters_.back().deadline,
                 .stamped = true,
                 .done = [this, number](const interlock::redis::Outcome& outcome) {
                   over(number, outcome.failure);
                 }});
}

void Wire::over(std::size_t number, const std::optional<Error>& failure) {
  auto& letter = letters_[number];
  if (failure)
    return owner_.heard(letter.number, node_, Vote::failed(*failure, failure->maybe_held()));
  auto& reply = commands_.reply();
  if (reply.type != REDIS_REPLY_ERROR)
    return owner_.heard(letter.number, node_, std::move(reply.vote));
  if (interlock::redis::error_code(reply.text) != "NOSCRIPT") {
    const auto error = to_error(reply.text, "node " + std::to_string(node_));
    return owner_.heard(letter.number, node_, Vote::refused(error));
  }
  // It goes out again behind everything that was sent since.
  if (owner_.may_send(letter.number)) {
    return post({.number = letter.number,
                 .message = letter.message,
                 .deadline = letter.deadline,
                 .in_full = true});
  }
  owner_.heard(letter.number, node_, Vote::withdrawn());
}

// As long as it is refused, nothing is done, whatever it is.
std::optional<Reply> Wire::serve(std::uint64_t connection, Command command) {
  using Kind = Command::Kind;
  auto& host = path_.host;
  if (command.kind != Kind::script && host.turns_away()) return std::nullopt;
  if (const auto* why = host.refusal()) return Reply{.type = REDIS_REPLY_ERROR, .text = why};
  switch (command.kind) {
    case Kind::info:
      return Reply{.text = std::to_string(connection)};
    case Kind::load:
      host.learn_all();
      return Reply{};
    case Kind::run:
      return Reply{.text = raw(static_cast<std::uint32_t>(host.epoch()))};
    case Kind::subscribe:
      listener().listens = connection;
      return Reply{};
    case Kind::kill:
      if (!commander().has(command.number))
        return Reply{.type = REDIS_REPLY_ERROR, .text = "ERR No such client"};
      commander().end(command.number);
      return Reply{};
    case Kind::script:
      return serve_script(connection, command);
  }
  return std::nullopt;
}

std::optional<Reply> Wire::serve_script(std::uint64_t connection, Command command) {
  auto& host = path_.host;
  auto& world = path_.world;
  check(connection, command);
  auto& letter = letters_[command.number];
  letter.served = true;
  const auto& message = letter.message;
  if (!letter.in_full && !host.knows(message.kind))
    return Reply{.type = REDIS_REPLY_ERROR, .text = "NOSCRIPT No matching script"};
  host.learn(message.kind);
  auto vote = host.node().serve(message, client_, host.clock());
  if (path_.weather.doubled != 0 && world.random.one_in(path_.weather.doubled))
    (void)host.node().serve(message, client_, host.clock());
  world.trace([&] {
    return "node " + std::to_string(node_) + " serves client " + std::to_string(client_) + ": " +
           describe(message) + " -> " + describe(vote);
  });
  return Reply{.vote = std::move(vote)};
}

void Wire::check(std::uint64_t connection, Command command) {
  auto& world = path_.world;
  const auto about = [&] {
    return "node " + std::to_string(node_) + " is told by connection " +
           std::to_string(connection) + " of client " + std::to_string(client_) + " to " +
           describe(letters_[command.number].message);
  };
  auto& newest = commander().newest;
  if (connection < newest)
    world.violate("late", about() + ", after connection " + std::to_string(newest));
  newest = std::max(newest, connection);
  if (letters_[command.number].served) world.violate("twice", about() + ", once more");
  if (command.stamp != 0 && command.stamp != path_.host.epoch())
    world.violate("stamp", about() + ", as run " + std::to_string(command.stamp) + " of run " +
                               std::to_string(path_.host.epoch()));
}

bool Wire::listen() {
  wanted_until_ = owner_.now() + kWantedFor;
  if (messages_.open()) return true;
  messages_.advance();
  return false;
}

bool Wire::publish(const interlock::Owner& owner) {
  const auto connection = listener().listens;
  if (!listener().has(connection)) return false;
  messages_.say(connection, {.turn = owner});
  return true;
}

void Wire::part(bool there, bool back) {
  path_.parted_there = path_.parted_there || there;
  path_.parted_back = path_.parted_back || back;
}

void Wire::join() {
  path_.parted_there = path_.parted_back = false;
  commands_.join();
  messages_.join();
}

void Wire::cut(bool delivers) {
  commands_.cut(delivers);
  messages_.cut(delivers);
}

void Wire::close() {
  commands_.close();
  messages_.close();
}

void Wire::restarted() {
  commands_.server_ended();
  messages_.server_ended();
}

}  // namespace simulation
