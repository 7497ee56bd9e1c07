#include "core/option_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <system_error>

#include "core/read_file.hpp"
#include "core/settings.hpp"
#include "core/text.hpp"

namespace interlock::core {

namespace {

std::size_t most_of(Secrecy secrecy) {
  return std::size_t{secrecy == Secrecy::secret ? 64U : 1024U} << 10U;
}

std::string too_large(Secrecy secrecy) {
  return " has more than " + std::to_string(most_of(secrecy) >> 10U) + " KiB";
}

std::string with_mode(const struct stat& info) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), " (mode %04o)",
                static_cast<unsigned>(info.st_mode & 07777U));
  return text.data();
}

void check_secret(const std::string& what, const std::string& path, const struct stat& info,
                  std::vector<std::string>& warnings) {
  const auto mode = with_mode(info);
  if ((info.st_mode & S_IWOTH) != 0)
    refuse_url(what + ": everybody can write to it" + mode + "; chmod go-w " + path);
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    warnings.push_back(what + ": it belongs to user " + std::to_string(info.st_uid) +
                       ", who can read and change it");
  } else if ((info.st_mode & S_IWGRP) != 0) {
    warnings.push_back(what + ": its group can write to it" + mode + "; chmod g-w " + path);
  } else if ((info.st_mode & S_IROTH) != 0) {
    warnings.push_back(what + ": everybody can read it" + mode + "; chmod o-r " + path);
  }
}

}  // namespace

std::string take_file(Url& url, const std::string& option, Secrecy secrecy,
                      std::vector<std::string>& warnings) {
  const auto path = url.take(option);
  if (path.empty()) return {};
  const auto what = option + ": " + printable(path, 400);
  const auto check = [&](int descriptor) {
    struct stat info {};
    if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
      refuse_url(what + " is not a regular file");
    if (secrecy == Secrecy::secret) check_secret(what, printable(path, 400), info, warnings);
  };
  try {
    auto content = read_file(path, check, most_of(secrecy));
    if (!content) refuse_url(what + " can't be read: there is no such file");
    if (content->empty()) refuse_url(what + " is empty");
    return std::move(*content);
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::file_too_large) refuse_url(what + too_large(secrecy));
    refuse_url(what + " can't be read: " + error.code().message());
  }
}

void check_file(const std::string& option, const std::string& path, Secrecy secrecy,
                std::vector<std::string>& warnings) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return;
  const auto what = option + ": " + printable(path, 400);
  if (!S_ISREG(info.st_mode)) refuse_url(what + " is not a regular file");
  if (static_cast<std::size_t>(info.st_size) > most_of(secrecy))
    refuse_url(what + too_large(secrecy));
  if (secrecy == Secrecy::secret) check_secret(what, printable(path, 400), info, warnings);
}

void add_warnings(std::vector<std::string>& to, const std::vector<std::string>& more) {
  for (const auto& warning : more) {
    if (std::find(to.begin(), to.end(), warning) == to.end()) to.push_back(warning);
  }
}

}  // namespace interlock::core
