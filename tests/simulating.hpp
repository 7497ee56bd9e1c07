// interlock simulate, at a small size, over a server of the tests' own.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "conformance/temporary_directory.hpp"
#include "servers/process.hpp"

namespace interlock::testing_support {

/// All four programs, each with processes; stress with some of them killed and stopped.
inline void simulate_all(const std::string& url) {
  const TemporaryDirectory directory;
  for (const std::string program : {"time", "speed", "stress", "escalation"}) {
    const auto output = (directory.path() / program).string();
    const int status =
        servers::run({INTERLOCK_BIN, "--url", url, "simulate", program, "--processes", "3",
                      "--threads", "2", "--ttl", program == "stress" ? "1s" : "30s", "--duration",
                      program == "stress" ? "4s" : "1s"},
                     output);
    std::ostringstream said;
    said << std::ifstream(output).rdbuf();
    EXPECT_EQ(status, 0) << said.str();
  }
}

}  // namespace interlock::testing_support
