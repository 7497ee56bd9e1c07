// What a crowd costs: bytes that pass, counted by a proxy. The bounds are several times what it takes,
// and a fraction of what it would take if everybody read who else is there.
#include "etcd/etcd_test.hpp"

namespace interlock::etcd_tests {
namespace {

class Costs : public EtcdTest<servers::EtcdServer> {
 protected:
  [[nodiscard]] std::uint64_t answers() const { return proxy_.passed(servers::Proxy::to_client); }
  /// So many who wait, one after the other.
  [[nodiscard]] std::vector<Waiting> crowd(const Acquirer& acquirer, std::size_t count) {
    const auto before = waiters(acquirer.resource());
    std::vector<Waiting> all;
    for (std::size_t i = 0; i < count; ++i) all.emplace_back(acquirer);
    EXPECT_TRUE(eventually([&] { return waiters(acquirer.resource()) == before + count; }));
    return all;
  }
  /// One of these has it, and gives it back. Until then, nobody else can have it.
  void comes_next(std::vector<Waiting>& who) {
    const auto first = [&] {
      return std::find_if(who.begin(), who.end(), [](const auto& one) { return one.over(); });
    };
    ASSERT_TRUE(eventually([&] { return first() != who.end(); }));
    const auto next = first();
    EXPECT_TRUE(next->lease());
    who.erase(next);
  }

  servers::Proxy proxy_{servers().port()};
  const Client counted_ = connect("etcd://127.0.0.1:" + std::to_string(proxy_.port()));
  const Client others_ = connect(url());
};

TEST_F(Costs, WhoeverJoinsALongLineReadsItsEnd) {
  const auto lease = Mutex(others_, "r", patient()).acquire();
  const auto line = crowd(Mutex(others_, "r", patient()), 150);
  Mutex(counted_, "warm", patient()).acquire().release();
  const auto before = answers();
  const auto last = crowd(Mutex(counted_, "r", patient()), 1);
  EXPECT_LT(answers() - before, 10'000);  // the line is 30,000 and more
}

TEST_F(Costs, ALineMovesOnWithoutBeingRead) {
  auto lease = Mutex(others_, "r", patient()).acquire();
  auto line = crowd(Mutex(counted_, "r", patient()), 80);
  const auto before = answers();
  lease.release();
  for (int i = 0; i < 80; ++i) comes_next(line);
  EXPECT_LT((answers() - before) / 80, 5'000);
}

TEST_F(Costs, ReadersThatAreWokenTogetherAreLetInTogether) {
  const RwLock lock(counted_, "r", patient());
  auto writer = RwLock(others_, "r", patient()).write();
  auto readers = crowd(lock.reader(), 60);
  const auto before = answers();
  writer.release();
  std::vector<Lease> leases;
  for (auto& reader : readers) leases.push_back(reader.lease());
  EXPECT_EQ(holders("r"), 60);
  EXPECT_LT((answers() - before) / 60, 5'000);
}

// One who comes while others read, and nobody waits to write.
TEST_F(Costs, AReaderAmongReadersReadsOneOfThem) {
  std::vector<Lease> leases;
  for (int i = 0; i < 60; ++i) leases.push_back(RwLock(others_, "r", patient()).read());
  RwLock(counted_, "warm", patient()).read().release();
  const auto before = answers();
  const auto lease = RwLock(counted_, "r", patient()).read();
  EXPECT_LT(answers() - before, 3'000);
  EXPECT_EQ(holders("r"), 61);
}

// Whoever hurries is not overtaken by those who take it unseen.
TEST_F(Costs, APriorityIsSeenByALineThatDoesNotLook) {
  auto lease = Mutex(others_, "r", patient()).acquire();
  auto line = crowd(Mutex(counted_, "r", patient()), 3);
  auto urgent = crowd(Mutex(others_, "r", {.ttl = 600s, .priority = 5}), 1);
  auto last = crowd(Mutex(counted_, "r", {.ttl = 600s, .priority = -5}), 1);
  lease.release();
  comes_next(urgent);
  for (int i = 0; i < 3; ++i) comes_next(line);
  comes_next(last);
}

}  // namespace
}  // namespace interlock::etcd_tests
