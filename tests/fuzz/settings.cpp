// The settings file: JSON by hand, from whoever keeps the machine.
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.hpp"
#include "interlock/config.hpp"

namespace {

/// A file that is there for the whole run, with other content each time.
class File {
 public:
  File() : descriptor_(::memfd_create("settings", MFD_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor_); }

  std::string with(std::string_view content) const {
    fuzz::require(::ftruncate(descriptor_, 0) == 0 &&
                      ::pwrite(descriptor_, content.data(), content.size(), 0) ==
                          static_cast<ssize_t>(content.size()),
                  "the file can be written");
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

}  // namespace

void fuzz::run(std::string_view input) {
  static const File file;
  const auto path = file.with(input);
  // A password where it belongs. Nothing shows it, whatever else is wrong with the file.
  constexpr std::string_view kUrl = "\"url\": \"redis://:hunter2-secret@";
  constexpr std::string_view kPassword = "hunter2-secret";
  const bool has_secret =
      input.find(kUrl) != input.npos && input.find(kPassword) == input.rfind(kPassword);
  const auto config =
      accepted([&] { return interlock::Config::load({.file = std::filesystem::path(path)}); },
               has_secret ? kPassword : std::string_view{});
  if (!config) return;
  const auto options = config->options();
  interlock::check_ttl(options.ttl, "");
  require(!options.max_wait || *options.max_wait > interlock::Duration::zero(),
          "a wait has a limit");
  for (const auto& setting : config->explain())
    require(!has_secret || setting.value.find(kSecret) == std::string::npos,
            "no setting shows a password");
  (void)config->warnings();
}
