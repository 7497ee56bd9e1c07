#include "full_program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "arguments.hpp"
#include "command.hpp"
#include "interlock/backend.hpp"
#include "tracing.hpp"

namespace cli {

namespace {

bool has_store(const std::string& scheme) {
  const auto stores = interlock::stores::all();
  return std::any_of(stores.begin(), stores.end(), [&](const interlock::StoreEntry& store) {
    return std::find(store.schemes.begin(), store.schemes.end(), scheme) != store.schemes.end();
  });
}

}  // namespace

#ifdef INTERLOCK_FULL_PROGRAM

void check_settings_file(const Common& common) {
  const char* variable = std::getenv("INTERLOCK_CONFIG");
  const std::string file = common.config.value_or(variable == nullptr ? "" : variable);
  std::error_code ignored;
  if (std::filesystem::is_fifo(file, ignored)) throw NeedsFullProgram();
}

void check_program(const Common& common) {
  if (traces_wanted() || !has_store(interlock::Url::parse(store_url(common)).scheme))
    throw NeedsFullProgram();
}

void become_full_program(char** argv, const std::vector<std::string>& arguments) {
  const auto program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / INTERLOCK_FULL_PROGRAM)
          .lexically_normal();
  const auto file = file_of(arguments);
  if (::fcntl(file.get(), F_SETFD, 0) == 0 &&
      ::setenv(kArgumentsVariable, std::to_string(file.get()).c_str(), 1) == 0)
    ::execv(program.c_str(), argv);
  throw Failure(kSoftware, "the part of the command that has this store can't be started: " +
                               program.string() + ": " + std::strerror(errno) +
                               "; install Interlock again");
}

#else

void check_settings_file(const Common& /*common*/) {}
void check_program(const Common& common) {
  const auto url = interlock::Url::parse(store_url(common));
  if (has_store(url.scheme) || url.scheme + ":" == interlock::detail::kWithheldStore) return;
  auto stores = interlock::stores::all();
  // No other process would see its locks, so this command has no use for it.
  std::erase_if(stores, [](const interlock::StoreEntry& store) { return store.name == "memory"; });
  throw of_origin(interlock::detail::no_store(url, stores), common);
}
void become_full_program(char** /*argv*/, const std::vector<std::string>& /*arguments*/) {
  throw Failure(kSoftware, "this is the full program already");
}

#endif

}  // namespace cli
