// Files that options of a store's URL name: a password, certificates and their keys.
#pragma once

#include <string>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock::core {

enum class Secrecy { secret, open };

/// Takes an option out of the URL, and reads the file that it names; empty if the option is not there. Throws Error
/// (invalid) that names the option and the file if it can't be read, is empty, is no regular file, or is larger than a
/// password (64 KiB) or certificates (1 MiB) can be. A secret that everybody may write to is refused; if others may
/// read or change it, `warnings` says so.
std::string take_file(Url& url, const std::string& option, Secrecy secrecy,
                      std::vector<std::string>& warnings);

/// The same for a library that reads the file itself, and says so if it can't.
void check_file(const std::string& option, const std::string& path, Secrecy secrecy,
                std::vector<std::string>& warnings);

/// Adds what is not there yet.
void add_warnings(std::vector<std::string>& to, const std::vector<std::string>& more);

}  // namespace interlock::core
