// The floor on PostgreSQL: advisory locks by hand. No fence, no lease, nobody to ask who holds it.
#include <functional>

#include "bench/bare/postgres.hpp"
#include "peer.hpp"

namespace peers {

namespace {

class BareSession final : public Lock {
 public:
  BareSession(const std::string& url, const std::string& name)
      : server_(url),
        key_(std::to_string(static_cast<std::int64_t>(std::hash<std::string>{}(name)))) {}

  std::uint64_t take(bool shared) override {
    shared_ = shared;
    server_.call(shared ? "lock_shared" : "lock", key_);
    return 0;
  }
  void give() override { server_.call(shared_ ? "unlock_shared" : "unlock", key_); }

 private:
  bench::BarePostgres server_;
  std::string key_;
  bool shared_ = false;
};

class PostgresPeer final : public Peer {
 public:
  explicit PostgresPeer(std::string url) : url_(std::move(url)) {
    const bench::BarePostgres check(url_);
  }

  [[nodiscard]] std::string version() const override {
    return "libpq " + std::to_string(PQlibVersion() / 10000) + "." +
           std::to_string(PQlibVersion() % 10000);
  }
  [[nodiscard]] std::string settings() const override {
    return "a connection per worker; pg_advisory_lock, prepared";
  }
  [[nodiscard]] std::string cannot(const Work& work) const override {
    return work.workers > 90 ? "needs a connection for each waiter" : "";
  }
  std::unique_ptr<Lock> lock(const std::string& name, std::chrono::milliseconds /*ttl*/) override {
    return std::make_unique<BareSession>(url_, name);
  }

 private:
  std::string url_;
};

}  // namespace

std::unique_ptr<Peer> postgres_peer(const Addresses& addresses) {
  return std::make_unique<PostgresPeer>(addresses.at(0));
}

}  // namespace peers
