// Finds the addresses of a host. A name server may be silent for many seconds: it is asked in a thread
// of its own, so that whoever drives the connections does not wait for it.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace interlock::io {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

class Resolution {
 public:
  /// Begins. What is an address already is found at once, without a thread. Throws Error (unreachable) if
  /// the process has no descriptor or thread left.
  Resolution(std::string host, std::string port);

  /// Readable when it is over.
  [[nodiscard]] int fd() const noexcept;
  /// Nothing yet; or what was found, once. Throws Error (unreachable) if there is no such host.
  std::optional<std::vector<Address>> take();

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< the thread's, too, which may outlive us
};

}  // namespace interlock::io
