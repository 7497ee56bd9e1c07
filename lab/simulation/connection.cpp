#include "connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "network.hpp"

namespace simulation {

using interlock::Errc;
using interlock::redis::Done;
using interlock::redis::Outcome;
using State = LinkMachine::State;

// The line end is where the machine expects it: the stamp goes before it.
std::string Command::bytes() const {
  std::string bytes(kSize, '\n');
  bytes[0] = static_cast<char>(kind);
  std::memcpy(bytes.data() + 1, &number, sizeof(number));
  std::memcpy(bytes.data() + 1 + sizeof(number), &stamp, sizeof(stamp));
  return bytes;
}

Command Command::parse(std::string_view bytes) {
  Command command{.kind = static_cast<Kind>(bytes[0])};
  std::memcpy(&command.number, bytes.data() + 1, sizeof(command.number));
  std::memcpy(&command.stamp, bytes.data() + 1 + sizeof(command.number), sizeof(command.stamp));
  return command;
}

Duration Path::delay() const { return world.random.between(weather.least, weather.most + lag); }

Connection::Connection(Path& path, Process& process, Plan plan)
    : path_(path),
      process_(process),
      plan_(std::move(plan)),
      machine_(plan_.link, static_cast<std::uint32_t>(path.world.random.next())) {}

void Connection::there(const StreamPtr& stream, std::function<void()> what) {
  stream->last_there = std::max(stream->last_there + 1us, path_.world.now() + path_.delay());
  path_.world.at(stream->last_there, [this, packet = Packet{stream, std::move(what)}]() mutable {
    arrive_there(std::move(packet));
  });
}

void Connection::arrive_there(Packet packet) {
  auto& stream = *packet.stream;
  if (stream.lost) return;
  if (path_.parted_there) return held_there_.push_back(std::move(packet));
  if (path_.world.now() >= stream.stuck_until) return packet.what();
  path_.world.at(stream.stuck_until,
                 [this, packet = std::move(packet)]() mutable { arrive_there(std::move(packet)); });
}

void Connection::back(const StreamPtr& stream, std::function<void()> what) {
  stream->last_back = std::max(stream->last_back + 1us, path_.world.now() + path_.delay());
  path_.world.at(stream->last_back, [this, packet = Packet{stream, std::move(what)}]() mutable {
    arrive_back(std::move(packet));
  });
}

void Connection::arrive_back(Packet packet) {
  if (path_.parted_back) return held_back_.push_back(std::move(packet));
  process_.run([this, packet = std::move(packet)]() mutable {
    if (packet.stream == stream_) packet.what();
  });
}

void Connection::add(interlock::redis::Request request) {
  machine_.add(std::move(request));
  advance();
}

void Connection::advance() {
  const bool keep_open = !stream_ && plan_.keep_open && plan_.keep_open();
  machine_.advance(process_.now(), keep_open, steps_);
  perform();
}

void Connection::perform() {
  if (std::exchange(steps_.close, false)) {
    hang_up();
  }
  if (!steps_.over.empty()) {
    // Not from within whatever asked for something.
    auto told = std::make_shared<std::vector<std::pair<Done, Error>>>();
    for (auto& over : steps_.over)
      told->emplace_back(std::move(over.request.done), machine_.failure_of(over, *steps_.why));
    steps_.over.clear();
    path_.world.in(0ms, [this, told] {
      process_.run([told] {
        for (const auto& [done, failure] : *told) done(Outcome{.reply = {}, .failure = failure});
      });
    });
  }
  steps_.why.reset();
  if (std::exchange(steps_.open, false)) dial();
  if (!steps_.bytes.empty()) send(std::exchange(steps_.bytes, {}));
  look_again();
  if (std::exchange(steps_.greeted, false)) {
    advance();
    if (plan_.on_open) plan_.on_open();
  }
}

// The kernel of the host answers, also for a process that is stopped.
void Connection::dial() {
  stream_ = std::make_shared<Stream>(Stream{.number = machine_.connection()});
  there(stream_, [this, stream = stream_] {
    if (path_.host.down()) return back(stream, [this] { fail("connection refused"); });
    path_.host.peer(plan_.peer).accept(stream->number);
    back(stream, [this] {
      machine_.opened(steps_);
      perform();
    });
  });
}

void Connection::hang_up() {
  if (!stream_) return;
  there(stream_, [this, number = stream_->number] {
    path_.host.arrive([this, number] { path_.host.peer(plan_.peer).end(number); });
  });
  stream_.reset();
}

void Connection::send(std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(Command::kSize)) {
    there(stream_, [this, stream = stream_, command = Command::parse(bytes)] {
      path_.host.arrive([this, stream, command] { serve(stream, command); });
    });
  }
}

void Connection::serve(const StreamPtr& stream, Command command) {
  if (!path_.host.peer(plan_.peer).has(stream->number)) return;
  auto reply = plan_.serve(stream->number, command);
  if (reply)
    return back(stream, [this, reply = std::move(*reply)]() mutable { hear(std::move(reply)); });
  path_.host.peer(plan_.peer).end(stream->number);
  back(stream, [this] { fail("the server closed the connection"); });
}

void Connection::say(std::uint64_t connection, Reply reply) {
  if (!stream_ || stream_->number != connection) return;
  back(stream_, [this, reply = std::move(reply)]() mutable { hear(std::move(reply)); });
}

void Connection::hear(Reply reply) {
  redisReply said{};
  said.type = reply.type;
  said.str = reply.text.data();
  said.len = reply.text.size();
  machine_.heard(said, process_.now(), steps_);
  const auto answered = std::exchange(steps_.answered, std::nullopt);
  const bool message = std::exchange(steps_.message, false);
  perform();
  if (message) plan_.on_message(reply);
  if (!answered) return;
  reply_ = std::move(reply);
  answered->done({});
}

void Connection::fail(const std::string& why) {
  machine_.failed(Error(Errc::unreachable, why), process_.now(), steps_);
  perform();
}

void Connection::look_again() {
  const auto next = machine_.next(plan_.keep_open && plan_.keep_open());
  if (next >= looks_at_) return;
  looks_at_ = next;
  process_.at(next, [this] {
    looks_at_ = TimePoint::max();
    advance();
  });
}

// Each stream sends again what did not get through: one that was given up, at a time of its own.
void Connection::join() {
  const auto now = path_.world.now();
  for (auto& packet : std::exchange(held_there_, {})) {
    auto& stream = *packet.stream;
    if (packet.stream != stream_ && stream.stuck_until <= now)
      stream.stuck_until = now + path_.world.random.between(0ms, 2s);
    arrive_there(std::move(packet));
  }
  for (auto& packet : std::exchange(held_back_, {})) arrive_back(std::move(packet));
}

void Connection::cut(bool delivers) {
  if (!stream_) return;
  stream_->lost = !delivers;
  if (path_.world.random.one_in(2))
    stream_->stuck_until = path_.world.now() + path_.world.random.between(0ms, 1s);
  path_.world.in(path_.world.random.between(0ms, 50ms), [this, stream = stream_] {
    process_.run([this, stream] {
      if (stream == stream_) fail("the connection was cut");
    });
  });
}

void Connection::server_ended() {
  if (stream_) back(stream_, [this] { fail("the server closed the connection"); });
}

}  // namespace simulation
