// Says when workers had to wait through no fault of their own, so that nothing is blamed for it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "history.hpp"

namespace torture {

/// Of the machine: again and again another process is asked to answer, and a file is brought to the disk. If that takes
/// long, it is a stall of the whole machine.
class Witness {
 public:
  /// The file is in the directory.
  Witness(const std::filesystem::path& directory, const Log& log);
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness();

 private:
  void run(const std::stop_token& stop);

  const Log& log_;
  int asks_ = -1;
  int hears_ = -1;
  int file_ = -1;
  pid_t echo_ = 0;
  std::jthread thread_;
};

/// Of the store: again and again somebody who holds nothing looks at a name, by the address that workers use. A lease whose
/// store did not answer in time may be lost; if the store is slow by a fault of ours, the benchmarks have to find it.
class StoreWitness {
 public:
  StoreWitness(std::string url, std::string name, const Log& log);

 private:
  void run(const std::stop_token& stop) const;

  std::string url_;
  std::string name_;
  const Log& log_;
  std::jthread thread_;
};

/// Of the roles of Redis servers: a replica that took over is written down as a fault. Nobody has to have ordered it.
class FailoverWitness {
 public:
  FailoverWitness(const std::vector<int>& ports, const Log& log);

 private:
  struct Server {
    int port;
    std::optional<bool> was_master{};  ///< when it last answered
  };

  void run(const std::stop_token& stop);

  std::vector<Server> servers_;
  const Log& log_;
  std::jthread thread_;
};

}  // namespace torture
