#include "simulate.hpp"

namespace cli {

int simulate_time(const Arguments& /*arguments*/) { throw Failure(kSoftware, "not yet there"); }
int simulate_speed(const Arguments& /*arguments*/) { throw Failure(kSoftware, "not yet there"); }
int simulate_stress(const Arguments& /*arguments*/) { throw Failure(kSoftware, "not yet there"); }
int simulate_escalation(const Arguments& /*arguments*/) {
  throw Failure(kSoftware, "not yet there");
}

}  // namespace cli
