// A descriptor that one thread makes readable for another.
#pragma once

#include "core/file_descriptor.hpp"

namespace interlock::io {

/// Never blocks. Throws Error (unreachable) if the process has no descriptor left.
FileDescriptor make_event_descriptor();
void ring(const FileDescriptor& event) noexcept;
void silence(const FileDescriptor& event) noexcept;

}  // namespace interlock::io
