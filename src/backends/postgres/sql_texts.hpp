// The files of sql/, as they are.
#pragma once

#include <string_view>

namespace interlock::postgres::sql {

extern const std::string_view schema;
extern const std::string_view trust;
extern const std::string_view rules;
extern const std::string_view lease_hooks;
extern const std::string_view lock_hooks;
extern const std::string_view own_paths;

}  // namespace interlock::postgres::sql
