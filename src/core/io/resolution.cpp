#include "core/io/resolution.hpp"

#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/quiet_thread.hpp"
#include "interlock/error.hpp"

namespace interlock::io {

struct Resolution::State {
  State(std::string of_host, std::string of_port)
      : host(std::move(of_host)), port(std::move(of_port)), over(::eventfd(0, EFD_CLOEXEC)) {
    if (over < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ::close(over); }

  /// False: with these flags, it can't be said.
  bool find(int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* list = nullptr;
    const int result = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    if (result == EAI_NONAME && (flags & AI_NUMERICHOST) != 0) return false;
    std::vector<Address> all;
    for (const auto* each = list; each != nullptr; each = each->ai_next) {
      auto& one = all.emplace_back();
      std::memcpy(&one.storage, each->ai_addr, each->ai_addrlen);
      one.size = each->ai_addrlen;
    }
    if (list != nullptr) freeaddrinfo(list);
    const std::lock_guard lock(mutex);
    error = result;
    found = std::move(all);
    const std::uint64_t one = 1;
    (void)!::write(over, &one, sizeof(one));
    return true;
  }

  const std::string host;
  const std::string port;
  const int over;
  std::mutex mutex;
  int error = 0;
  std::optional<std::vector<Address>> found;
};

Resolution::Resolution(std::string host, std::string port)
    : state_(std::make_shared<State>(std::move(host), std::move(port))) {
  if (state_->find(AI_NUMERICHOST)) return;
  core::quiet_thread([state = state_] { state->find(AI_ADDRCONFIG); }).detach();
}

int Resolution::fd() const noexcept { return state_->over; }

std::optional<std::vector<Address>> Resolution::take() {
  const std::lock_guard lock(state_->mutex);
  if (state_->error != 0) {
    throw Error(Errc::unreachable,
                std::string("can't find the host: ") + gai_strerror(state_->error));
  }
  return std::exchange(state_->found, std::nullopt);
}

}  // namespace interlock::io
