#include "full_program.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "command.hpp"
#include "descriptor.hpp"
#include "interlock/backend.hpp"
#include "tracing.hpp"

namespace cli {

namespace {

// The number of a descriptor: the arguments are in that file. Among the arguments of a process, others could read
// the passwords in them until the program is loaded and hides them.
constexpr const char* kArguments = "INTERLOCK_ARGUMENTS_FD";

bool has_store(const std::string& scheme) {
  const auto stores = interlock::stores::all();
  return std::any_of(stores.begin(), stores.end(), [&](const interlock::StoreEntry& store) {
    return std::find(store.schemes.begin(), store.schemes.end(), scheme) != store.schemes.end();
  });
}

}  // namespace

#ifdef INTERLOCK_FULL_PROGRAM

namespace {

/// A file in memory with these, each ended by a zero.
Descriptor file_of(const std::vector<std::string>& arguments) {
  Descriptor file(::memfd_create("interlock-arguments", 0));
  std::string all;
  for (const auto& argument : arguments) all.append(argument).push_back('\0');
  for (std::size_t done = 0; file && done < all.size();) {
    const auto more = ::write(file.get(), all.data() + done, all.size() - done);
    if (more <= 0) return {};
    done += static_cast<std::size_t>(more);
  }
  return file;
}

}  // namespace

std::vector<std::string> arguments_of(int argc, char** argv) {
  return {argv + std::min(argc, 1), argv + argc};
}

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
  if (file && ::setenv(kArguments, std::to_string(file.get()).c_str(), 1) == 0)
    ::execv(program.c_str(), argv);
  throw Failure(kSoftware, "the part of the command that has this store can't be started: " +
                               program.string() + ": " + std::strerror(errno) +
                               "; install Interlock again");
}

#else

std::vector<std::string> arguments_of(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const char* variable = std::getenv(kArguments);
  if (variable == nullptr) return arguments;  // started by hand
  int number = -1;
  std::from_chars(variable, variable + std::strlen(variable), number);
  ::unsetenv(kArguments);
  const Descriptor file(number);
  std::string all;
  std::array<char, 65536> buffer{};
  while (true) {
    const auto got = ::pread(number, buffer.data(), buffer.size(), static_cast<off_t>(all.size()));
    if (got <= 0) break;
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
  arguments.clear();
  for (std::size_t at = 0; at < all.size(); at += arguments.back().size() + 1)
    arguments.emplace_back(all.c_str() + at);
  return arguments;
}

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
