// What must not be left on the machine, however this process ends.
#pragma once

#include <string>

namespace torture {

/// A shell command that runs when this object goes, or when its process does, be it killed.
class LastWill {
 public:
  explicit LastWill(std::string command);
  LastWill(const LastWill&) = delete;
  LastWill& operator=(const LastWill&) = delete;
  /// Waits until the command has ended.
  ~LastWill();

 private:
  int until_ = -1;
  int done_ = -1;
};

}  // namespace torture
