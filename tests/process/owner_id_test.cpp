// What the command shows of a program that gave itself a name.
#include "child.hpp"

namespace interlock::process {
namespace {

TEST(OwnerId, IsShownByWhoAndInJson) {  // row 2.2
  const TemporaryDirectory directory;
  const auto url = "file://" + directory.path().string() + "/locks";
  const auto locks = connect(url);
  const auto lease =
      Mutex(locks, "report", {.label = "weekly", .name_space = "billing", .owner_id = "worker-7"})
          .acquire();
  Child people("../interlock", {"--url", url, "who", "billing:report"});
  const auto line = people.line();
  EXPECT_EQ(line.find("billing:report: held by worker-7 on "), 0U) << line;
  EXPECT_NE(line.find(" (weekly) "), std::string::npos) << line;
  const auto unlabelled = Mutex(locks, "other").acquire();
  Child programs("../interlock", {"--url", url, "list", "--json"});
  const auto json = programs.line();
  EXPECT_NE(json.find(R"("who":"weekly","owner_id":"worker-7",)"), std::string::npos) << json;
  const auto process = ":" + std::to_string(::getpid()) + R"(","owner_id":"")";
  EXPECT_NE(json.find(process), std::string::npos) << json << " lacks " << process;
}

}  // namespace
}  // namespace interlock::process
