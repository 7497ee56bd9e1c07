#include "core/format.hpp"

namespace interlock::core {

std::string other_format(std::uint64_t found, std::uint64_t known) {
  const auto ours = ", and this program works with format " + std::to_string(known) +
                    " alone. Nothing was changed. ";
  if (found > known)
    return "its record is of format " + std::to_string(found) + ours + "Update Interlock";
  const auto theirs =
      found == 0 ? std::string("its record was made by a build of Interlock before 0.2 (format 0)")
                 : "its record is of format " + std::to_string(found);
  return theirs + ours +
         "Stop the programs that use it with an older Interlock, and wait until their locks have "
         "ended";
}

}  // namespace interlock::core
