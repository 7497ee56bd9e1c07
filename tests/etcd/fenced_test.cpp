// The data asks whether the lease still holds: a holder that was stopped past its TTL wakes up and
// writes.
#include "etcd/etcd_test.hpp"
#include "interlock/etcd.hpp"

namespace interlock::etcd_tests {
namespace {

class Fenced : public EtcdTest<servers::EtcdServer> {};

TEST_F(Fenced, AStoppedHolderThatWakesUpIsRefusedByTheCompare) {
  // The key is the same for all who hold it alone; the revision is the fence.
  auto guard = etcd_guard(Mutex(connect(url()), "report").acquire());
  guard.create_revision = 0;
  auto compare = guard.etcdctl();
  compare.replace(compare.rfind("\"0\""), 3, "\"%s\"");
  for (std::size_t at = 0; (at = compare.find('\\', at)) != std::string::npos; at += 2)
    compare.insert(at, 1, '\\');
  const auto as_the_holder = [&](const std::string& value) {
    return "do printf '" + compare + "\\n\\nput data " + value +
           "\\n\\n\\n' $FENCE | ETCDCTL_API=3 etcdctl --endpoints http://" + servers().address() +
           " txn";
  };
  const auto write = [&](const Lease& lease, const std::string& value) {
    return servers().ctl({"txn"}, etcd_guard(lease).etcdctl() + "\n\nput data " + value + "\n\n\n");
  };

  Child stopped("holder", {url(), "report", "2s"});
  EXPECT_GT(stopped.fence(), 0U);
  EXPECT_TRUE(stopped.ask(as_the_holder("draft"), "did ").starts_with("SUCCESS"));
  stopped.signal(SIGSTOP);
  const auto lease = Mutex(connect(url()), "report").acquire();
  stopped.tell(as_the_holder("late"));
  stopped.signal(SIGCONT);
  EXPECT_TRUE(stopped.after("did ").starts_with("FAILURE"));
  EXPECT_TRUE(write(lease, "final").starts_with("SUCCESS"));
  EXPECT_EQ(servers().ctl({"get", "--print-value-only", "data"}), "final\n");
}

TEST_F(Fenced, AGuardIsForAnExclusiveLeaseOfEtcds) {
  const auto locks = connect(url());
  const auto why = [](const Lease& lease, const std::string& resource) -> std::string {
    try {
      (void)etcd_guard(lease, resource);
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::unsupported) << error.what();
      EXPECT_EQ(error.resource(), resource);
      return error.message();
    }
    return "a guard";
  };
  auto reader = RwLock(locks, "report").read();
  EXPECT_NE(why(reader, "report").find("shared"), std::string::npos);
  const auto mixed = MultiLock(locks, {exclusive("a"), shared("b"), slots("c", 1, 2)}).acquire();
  EXPECT_EQ(why(mixed, "a"), "a guard");
  EXPECT_NE(why(mixed, "b").find("shared"), std::string::npos);
  EXPECT_NE(why(mixed, "c").find("semaphore"), std::string::npos);
  const auto elsewhere = Mutex(connect("memory:"), "report").acquire();
  EXPECT_NE(why(elsewhere, "report").find("another store"), std::string::npos);
  ASSERT_TRUE(reader.try_upgrade());
  EXPECT_EQ(why(reader, "report"), "a guard");
}

}  // namespace
}  // namespace interlock::etcd_tests
