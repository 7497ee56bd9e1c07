// A connection to Redis while allocations fail, to a server in the same thread.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>

#include "backends/redis/link.hpp"
#include "no_memory/failing.hpp"

namespace interlock::redis {
namespace {

using namespace std::chrono_literals;
using namespace no_memory;

/// Answers `greet` and, on connections that begin later than it is told, each other line with itself: as an error if
/// it begins with `bad`.
class Server {
 public:
  explicit Server(std::string path) : path_(std::move(path)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 5), 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    hang_up();
    ::close(listener_);
    std::filesystem::remove(path_);
  }

  void answer_requests() { answers_ = true; }
  void hang_up() {
    if (connection_ >= 0) ::close(connection_);
    connection_ = -1;
  }
  /// How many requests it has read.
  int serve() {
    const Exempt me;
    if (const int next = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK); next >= 0) {
      hang_up();
      connection_ = next;
    }
    std::array<char, 4096> buffer{};
    const auto got = connection_ < 0 ? 0 : ::read(connection_, buffer.data(), buffer.size());
    if (got == 0) hang_up();
    for (auto text = std::string_view(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
         !text.empty();) {
      const auto line = text.substr(0, text.find('\n') + 1);
      text.remove_prefix(line.size());
      const bool greeting = line == "greet\r\n";
      if (!greeting) ++read_;
      if (!greeting && !answers_) continue;
      const auto reply = (line.starts_with("bad") ? "-ERR " : "+") + std::string(line);
      EXPECT_EQ(::write(connection_, reply.data(), reply.size()),
                static_cast<ssize_t>(reply.size()));
    }
    return read_;
  }

 private:
  const std::string path_;
  int listener_ = -1, connection_ = -1;
  bool answers_ = false;
  int read_ = 0;
};

class Talk {
 public:
  explicit Talk(const std::string& path) : server_(path), link_(plan(path)) {}

  void ask(const std::string& what) {
    link_.add({.bytes = what + "\r\n", .done = [this, what](const Outcome& outcome) {
                 const Exempt me;
                 ++told_[what];
                 if (!outcome.reply) return;
                 const bool bad = what.starts_with("bad");
                 EXPECT_EQ(text_of(*outcome.reply), bad ? "ERR " + what : what);
                 EXPECT_EQ(is_error(*outcome.reply), bad);
               }});
  }
  /// Until this is so, or for ten seconds; or until nobody would look after the link any more.
  template <class Enough>
  bool turn_until(Enough enough) {
    const auto until = BootClock::now() + 10s;
    while (!enough() && BootClock::now() < until) {
      const bool comes = link_.fd() >= 0 || link_.next() < TimePoint::max();
      if (!link_.active() || !comes) break;
      server_.serve();
      // As io::Loop does.
      try {
        link_.advance(BootClock::now(), finished_);
      } catch (const std::bad_alloc&) {
      }
      if (link_.fd() >= 0) {
        pollfd ready{.fd = link_.fd(), .events = link_.events(), .revents = 0};
        (void)::poll(&ready, 1, 1);
        try {
          if (ready.revents != 0) link_.ready(BootClock::now(), finished_, false);
        } catch (const std::bad_alloc&) {
        }
      }
      const Exempt me;
      for (const auto& tell : std::exchange(finished_.list, {})) tell();
    }
    return enough();
  }
  Server& server() { return server_; }
  [[nodiscard]] int told(const char* what) const {
    const Exempt me;
    const auto it = told_.find(what);
    return it == told_.end() ? 0 : it->second;
  }

 private:
  Link::Plan plan(const std::string& path) {
    Link::Plan plan{.name = "here", .endpoint = {.socket = path}};
    plan.greetings = {{.bytes = "greet\r\n", .check = [this](const redisReply&) {
                         const std::string looked(100, ' ');
                         checked_ = true;
                         return std::optional<Error>();
                       }}};
    plan.on_open = [this] { EXPECT_TRUE(checked_); };
    plan.on_close = [this](const Error&) { checked_ = false; };
    return plan;
  }

  Server server_;
  Link link_;
  Finished finished_;
  std::map<std::string, int> told_;
  bool checked_ = false;  // on this connection
};

TEST(NoMemoryForRedis, GivesNoRequestTheReplyToAnother) {
  const Exempt me;
  const auto path = testing::TempDir() + "no_memory_" + std::to_string(::getpid());
  long next = 1;
  for (bool fails = true; fails; ++next) {
    Talk talk(path);
    talk.ask("one");
    talk.ask("two");
    ASSERT_TRUE(talk.turn_until([&] { return talk.server().serve() == 2; }));
    talk.server().answer_requests();
    talk.server().hang_up();
    const auto failures = failed.load();
    fails_at = allocations + next;
    exempt = false;
    const bool happened = talk.turn_until(
        [&] { return failed > failures || talk.told("one") + talk.told("two") == 2; });
    exempt = true;
    fails_at = 0;
    fails = failed > failures;
    ASSERT_TRUE(happened);
    talk.ask("three");
    talk.ask("four");
    EXPECT_TRUE(talk.turn_until([&] {
      return talk.told("one") > 0 && talk.told("two") > 0 && talk.told("three") > 0 &&
             talk.told("four") > 0;
    })) << "after failure of allocation "
        << next;
    for (const auto* each : {"one", "two", "three", "four"}) EXPECT_LE(talk.told(each), 1) << each;
  }
  EXPECT_GT(next, 5) << "it allocates something";
}

// The reply has left the stream when there is no memory to look at it, nor to say so.
TEST(NoMemoryForRedis, GivesNoReplyToTheNextRequestIfSeveralAllocationsFailInARow) {
  const Exempt me;
  const auto path = testing::TempDir() + "no_memory_" + std::to_string(::getpid());
  const auto* const bad = "bad, and more than a few words about it";
  for (const long row : {1, 2, 3, 4}) {
    in_a_row = row;
    long next = 1;
    for (int without = 0; without < 2; ++next) {
      Talk talk(path);
      talk.server().answer_requests();
      talk.ask(bad);
      talk.ask("two");
      const auto both = [&] { return talk.told(bad) + talk.told("two") == 2; };
      // In turns from the beginning, while it connects and is greeted, and when the replies have come.
      if (next % 2 == 0) {
        ASSERT_TRUE(talk.turn_until([&] { return talk.server().serve() == 2; }));
      }
      const auto failures = failed.load();
      fails_at = allocations + (next + 1) / 2;
      exempt = false;
      (void)talk.turn_until([&] { return allocations >= fails_at + row - 1 || both(); });
      exempt = true;
      fails_at = 0;
      without = failed > failures ? 0 : without + 1;
      talk.ask("three");
      talk.ask("four");
      EXPECT_TRUE(talk.turn_until([&] {
        return both() && talk.told("three") > 0 && talk.told("four") > 0;
      })) << row
          << " from allocation " << next;
      for (const auto* each : {bad, "two", "three", "four"}) EXPECT_LE(talk.told(each), 1) << each;
    }
    EXPECT_GT(next, 5) << "it allocates something";
  }
  in_a_row = 1;
}

TEST(NoMemoryForRedis, TellsWhatIsOverAlsoIfNobodyAsksForMore) {
  const Exempt me;
  const auto path = testing::TempDir() + "no_memory_" + std::to_string(::getpid());
  long next = 1;
  for (bool fails = true; fails; ++next) {
    Talk talk(path);
    talk.ask("one");
    talk.ask("two");
    ASSERT_TRUE(talk.turn_until([&] { return talk.server().serve() == 2; }));
    talk.server().hang_up();
    const auto failures = failed.load();
    fails_at = allocations + next;
    exempt = false;
    EXPECT_TRUE(talk.turn_until([&] { return talk.told("one") + talk.told("two") == 2; }))
        << "after failure of allocation " << next;
    exempt = true;
    fails_at = 0;
    fails = failed > failures;
  }
  EXPECT_GT(next, 3) << "it allocates something";
}

}  // namespace
}  // namespace interlock::redis
