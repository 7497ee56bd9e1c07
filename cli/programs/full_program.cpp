#include "full_program.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#ifdef INTERLOCK_FULL_PROGRAM
#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "interlock/backend.hpp"
#include "tracing.hpp"
#endif

#include "command.hpp"

namespace cli {

#ifdef INTERLOCK_FULL_PROGRAM

namespace {

bool has_store(const std::string& scheme) {
  const auto stores = interlock::stores::all();
  return std::any_of(stores.begin(), stores.end(), [&](const interlock::StoreEntry& store) {
    return std::find(store.schemes.begin(), store.schemes.end(), scheme) != store.schemes.end();
  });
}

}  // namespace

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

void become_full_program(const std::vector<std::string>& arguments) {
  const auto program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / INTERLOCK_FULL_PROGRAM)
          .lexically_normal();
  std::string name = "interlock";
  std::vector<char*> argv{name.data()};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  throw Failure(kSoftware, "the part of the command that has this store can't be started: " +
                               program.string() + ": " + std::strerror(errno) +
                               "; install Interlock again");
}

#else

void check_settings_file(const Common& /*common*/) {}
void check_program(const Common& /*common*/) {}
void become_full_program(const std::vector<std::string>& /*arguments*/) {
  throw Failure(kSoftware, "this is the full program already");
}

#endif

}  // namespace cli
