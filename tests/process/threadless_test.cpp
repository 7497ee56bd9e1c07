// A process that the system gives no thread. Rule 10.
#include "process/child.hpp"

namespace interlock::process {
namespace {

// Nothing may be granted that no thread watches, and no callback may be waited for that no thread can run.
TEST(Threadless, ACallIsAnErrorBeforeTheStoreIsAsked) {
  Child program("threadless", {"memory:"});
  const std::string error =
      "'r': no thread can be started: Resource temporarily unavailable; raise the limit of "
      "processes (ulimit -u): store unavailable";
  EXPECT_EQ(program.after("acquire "), error);
  EXPECT_EQ(program.after("callback "), error);
  EXPECT_EQ(program.after("known "), "0") << "nothing was granted";
  EXPECT_EQ(program.after("release "), error);
  EXPECT_EQ(program.after("known "), "1") << "it is held as before";
  EXPECT_EQ(program.after("released "), "1");
  EXPECT_EQ(program.after("called "), "1") << "the refused callback is not called later";
  EXPECT_EQ(program.wait(), 0);
}

}  // namespace
}  // namespace interlock::process
