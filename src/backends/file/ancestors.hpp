// The directories above a store: whoever may rename one of them may put another store in its place.
#pragma once

#include <functional>
#include <string>

#include "core/file_descriptor.hpp"

namespace interlock::file {

/// Opens the directory that holds the last part of `path` (absolute, and lexically normal), and looks at every directory
/// and symbolic link on the way, as the kernel goes it. Each has to belong to this user or to root, and to be writable for
/// nobody else unless it is sticky. Calls `refuse` (which throws) with the first one that is not so: who could do what,
/// and what to do. Empty, and errno, if one can't be opened.
FileDescriptor open_parent(const std::string& path,
                           const std::function<void(const std::string& why)>& refuse);

}  // namespace interlock::file
