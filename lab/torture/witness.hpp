// Says when the machine is so busy that a server may be late through no fault of its own. Again and again another process
// is asked to answer, and a file is brought to the disk; if that takes long, it is a stall of the whole machine.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <thread>

#include "history.hpp"

namespace torture {

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

}  // namespace torture
