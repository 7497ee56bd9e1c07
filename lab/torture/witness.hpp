// Says when the machine is so busy that a server may be late through no fault of its own: another process is asked to
// answer again and again, and each answer that takes long is a stall of the whole machine in the history.
#pragma once

#include <sys/types.h>

#include <thread>

#include "history.hpp"

namespace torture {

class Witness {
 public:
  explicit Witness(const Log& log);
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness();

 private:
  void run(const std::stop_token& stop);

  const Log& log_;
  int asks_ = -1;
  int hears_ = -1;
  pid_t echo_ = 0;
  std::jthread thread_;
};

}  // namespace torture
