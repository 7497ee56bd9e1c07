// The files scripts/*.lua, as the build found them.
#pragma once

#include <string_view>

namespace interlock::redis {

extern const std::string_view kAcquireSimpleLua;
extern const std::string_view kAcquireLua;
extern const std::string_view kInspectLua;
extern const std::string_view kRedlockAcquireLua;
extern const std::string_view kRedlockAcquireSimpleLua;
extern const std::string_view kRedlockBeginLua;
extern const std::string_view kRedlockConfirmLua;
extern const std::string_view kRedlockHealLua;
extern const std::string_view kRedlockMendLua;
extern const std::string_view kRedlockNodeLua;
extern const std::string_view kRedlockReleaseLua;
extern const std::string_view kRedlockRenewLua;
extern const std::string_view kRedlockRowsLua;
extern const std::string_view kRedlockYieldLua;
extern const std::string_view kReleaseSimpleLua;
extern const std::string_view kReleaseLua;
extern const std::string_view kRenewSimpleLua;
extern const std::string_view kRenewLua;
extern const std::string_view kRowsLua;

}  // namespace interlock::redis
