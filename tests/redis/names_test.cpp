// A name server that hears every question and answers none.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "redis/redis_test.hpp"

namespace interlock::redis_tests {
namespace {

/// Where the system's resolver can be sent to, which needs rights that not everybody has.
class SilentNameServer {
 public:
  SilentNameServer() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(53);
    ::inet_pton(AF_INET, address_.c_str(), &address.sin_addr);
    ready_ = ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    std::ofstream(directory_.path() / "resolv.conf")
        << "nameserver " << address_ << "\noptions timeout:15 attempts:2\n";
    ready_ = ready_ && run({"true"}) == 0;
  }
  SilentNameServer(const SilentNameServer&) = delete;
  SilentNameServer& operator=(const SilentNameServer&) = delete;
  ~SilentNameServer() { ::close(fd_); }

  [[nodiscard]] bool ready() const { return ready_; }
  /// Runs a program that knows no other name server; its exit status.
  [[nodiscard]] int run(const std::vector<std::string>& words) const {
    std::vector<std::string> all{"unshare",
                                 "-m",
                                 "sh",
                                 "-c",
                                 R"(mount --bind "$0" /etc/resolv.conf && exec "$@")",
                                 (directory_.path() / "resolv.conf").string()};
    all.insert(all.end(), words.begin(), words.end());
    return servers::run(std::move(all), output());
  }
  [[nodiscard]] std::string said() const {
    std::ifstream file(output());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  [[nodiscard]] std::string output() const { return (directory_.path() / "output").string(); }

  /// Of this process only.
  const std::string address_ = "127.77." + std::to_string(::getpid() / 250 % 250) + "." +
                               std::to_string(::getpid() % 250 + 1);
  TemporaryDirectory directory_;
  int fd_;
  bool ready_ = false;
};

// One node of three can't be found, nor is there an error. Expected: the other two decide meanwhile.
TEST(Names, ASilentNameServerHoldsNobodyUp) {
  const SilentNameServer names;
  if (!names.ready()) GTEST_SKIP() << "this needs the rights of root";
  const servers::RedisServer first;
  const servers::RedisServer second;
  const auto begin = BootClock::now();
  const int status = names.run(
      {INTERLOCK_BIN, "--url",
       "redlock://redis.example:6379," + first.address() + "," + second.address() + "?timeout=5s",
       "run", "-w", "5s", "job", "--", "true"});
  EXPECT_EQ(status, 0) << names.said();
  EXPECT_LT(BootClock::now() - begin, 20s) << "the resolver itself takes 30 s";
}

}  // namespace
}  // namespace interlock::redis_tests
