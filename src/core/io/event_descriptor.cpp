#include "core/io/event_descriptor.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "interlock/error.hpp"

namespace interlock::io {

FileDescriptor make_event_descriptor() {
  FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) {
    throw Error(Errc::unreachable,
                "no descriptor is left: " + std::generic_category().message(errno) +
                    "; raise the limit (ulimit -n)");
  }
  return event;
}

void ring(const FileDescriptor& event) noexcept {
  const std::uint64_t one = 1;
  (void)!::write(event.get(), &one, sizeof(one));
}

void silence(const FileDescriptor& event) noexcept {
  std::uint64_t rings = 0;
  (void)!::read(event.get(), &rings, sizeof(rings));
}

}  // namespace interlock::io
