#include "core/io/resolution.hpp"

#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/contain.hpp"
#include "core/io/event_descriptor.hpp"
#include "core/quiet_thread.hpp"
#include "interlock/error.hpp"

namespace interlock::io {

struct Resolution::State {
  State(std::string of_host, std::string of_port)
      : host(std::move(of_host)), port(std::move(of_port)), over(make_event_descriptor()) {}

  /// False: with these flags, it can't be said.
  bool find(int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* list = nullptr;
    const int result = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    const int reason = errno;
    if (result == EAI_NONAME && (flags & AI_NUMERICHOST) != 0) return false;
    std::vector<Address> all;
    for (const auto* each = list; each != nullptr; each = each->ai_next) {
      auto& one = all.emplace_back();
      std::memcpy(&one.storage, each->ai_addr, each->ai_addrlen);
      one.size = each->ai_addrlen;
    }
    if (list != nullptr) freeaddrinfo(list);
    const std::lock_guard lock(mutex);
    if (result == EAI_SYSTEM) {
      error = std::generic_category().message(reason);
    } else if (result != 0) {
      error = gai_strerror(result);
    }
    found = std::move(all);
    ring(over);
    return true;
  }

  const std::string host;
  const std::string port;
  const FileDescriptor over;
  std::mutex mutex;
  std::string error;
  std::optional<std::vector<Address>> found;
};

Resolution::Resolution(std::string host, std::string port)
    : state_(std::make_shared<State>(std::move(host), std::move(port))) {
  if (state_->find(AI_NUMERICHOST)) return;
  core::quiet_thread([state = state_] {
    (void)core::contain([&] { state->find(AI_ADDRCONFIG); });
  }).detach();
}

int Resolution::fd() const noexcept { return state_->over.get(); }

std::optional<std::vector<Address>> Resolution::take() {
  const std::lock_guard lock(state_->mutex);
  if (!state_->error.empty())
    throw Error(Errc::unreachable, "can't find the host: " + state_->error);
  return std::exchange(state_->found, std::nullopt);
}

}  // namespace interlock::io
