// The floor on Redis: SET NX PX, and compare-and-delete. Whoever finds it taken asks again.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "bench/bare/redis.hpp"
#include "peer.hpp"

namespace peers {

namespace {

class BareLock final : public Lock {
 public:
  BareLock(int port, std::string name, std::chrono::milliseconds ttl, std::string token)
      : server_(port),
        name_(std::move(name)),
        ttl_(std::to_string(ttl.count())),
        token_(std::move(token)) {}

  std::uint64_t take(bool /*shared*/) override {
    while (!server_.take(name_, token_, ttl_))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  }
  void give() override { server_.give(name_, token_); }

 private:
  bench::BareRedis server_;
  std::string name_;
  std::string ttl_;
  std::string token_;
};

class RedisPeer final : public Peer {
 public:
  explicit RedisPeer(const std::string& address)
      : port_(std::stoi(address.substr(address.rfind(':') + 1))) {
    const bench::BareRedis check(port_);
  }

  [[nodiscard]] std::string version() const override {
    return "hiredis " + std::to_string(HIREDIS_MAJOR) + "." + std::to_string(HIREDIS_MINOR) + "." +
           std::to_string(HIREDIS_PATCH);
  }
  [[nodiscard]] std::string settings() const override {
    return "a connection per worker; asks again after 1 ms";
  }
  [[nodiscard]] std::string cannot(const Work& work) const override {
    return work.shared > 0 ? "has no shared form" : "";
  }
  std::unique_ptr<Lock> lock(const std::string& name, std::chrono::milliseconds ttl) override {
    return std::make_unique<BareLock>(port_, "bare:" + name, ttl,
                                      std::to_string(::getpid()) + "-" + std::to_string(++made_));
  }

 private:
  int port_;
  std::atomic<int> made_ = 0;
};

}  // namespace

std::unique_ptr<Peer> redis_peer(const Addresses& addresses) {
  return std::make_unique<RedisPeer>(addresses.at(0));
}

}  // namespace peers
