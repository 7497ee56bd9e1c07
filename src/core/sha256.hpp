// SHA-256, where a name has to stand for bytes of any length. The core has no library for it.
#pragma once

#include <string>
#include <string_view>

namespace interlock::core {

/// 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace interlock::core
