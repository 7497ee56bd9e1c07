// The place of a user's file store if nobody names one.
#pragma once

#include <string_view>

namespace interlock::config {

/// For a URL that is about to be opened: if it is the default place, it must be the only one of this
/// user. Throws Error (refused) if it is private to this process, or if locks are held in the place that
/// an earlier build used.
void check_default_place(std::string_view url);

}  // namespace interlock::config
