// What `interlock deadlocks` shows of a circle that nobody breaks.
#include "child.hpp"
#include "waiting.hpp"

namespace interlock::process {
namespace {

using testing_support::all_who_wait;
using testing_support::Waiting;

TEST(DeadlocksCommand, ShowsWhoWaitsForWhom) {
  const TemporaryDirectory directory;
  const auto url = "file://" + directory.path().string() + "/locks";
  const auto locks = connect(url, {.deadlocks = Deadlocks::off});
  const auto mutex = [&](const char* name, const char* actor) {
    return Mutex(locks, name, {.label = std::string(actor) + "'s job", .actor = actor});
  };
  const auto a = mutex("a", "ann").acquire();
  const auto b = mutex("b", "bob").acquire();
  Waiting ann(mutex("b", "ann"));
  EXPECT_TRUE(eventually([&] { return all_who_wait(locks) == 1; }));
  Waiting bob(mutex("a", "bob"));
  EXPECT_TRUE(eventually([&] { return all_who_wait(locks) == 2; }));

  Child people("../interlock", {"--url", url, "deadlocks"});
  const auto first = people.line();
  const auto second = people.line();
  for (const auto* part :
       {"(ann's job) as ann has waited ", " for b, held by ", "(bob's job) as bob"})
    EXPECT_NE(first.find(part), std::string::npos) << first;
  for (const auto* part :
       {"(bob's job) as bob has waited ", " for a, held by ", "(ann's job) as ann"})
    EXPECT_NE(second.find(part), std::string::npos) << second;
  EXPECT_EQ(people.line(), "(nothing)");

  Child programs("../interlock", {"--url", url, "deadlocks", "--json"});
  const auto json = programs.line();
  for (const auto* part : {R"("actor":"ann")", R"("waits_for":"b")", R"("behind":"holder")",
                           R"("youngest":1)", R"("who":"bob's job","identity":"","actor":"bob",)",
                           R"("blocked_by":{"pid":)", R"("deadlocks":[{)"})
    EXPECT_NE(json.find(part), std::string::npos) << json;
}

}  // namespace
}  // namespace interlock::process
