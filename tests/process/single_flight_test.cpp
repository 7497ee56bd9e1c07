#include "process/stampede.hpp"

namespace interlock::process {
namespace {

using SingleFlights = ProcessTest;

TEST_F(SingleFlights, ThreeHundredCallersInThreeProcessesAreOneRun) {
  expect_one_run(url(), directory() / "cache");
}

TEST_F(SingleFlights, AKilledGeneratorIsReplacedByAnother) {
  expect_another_run(url(), directory() / "cache");
}

}  // namespace
}  // namespace interlock::process
