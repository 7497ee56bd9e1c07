#include "core/read_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

namespace interlock::core {

std::optional<std::string> read_file(const std::filesystem::path& path,
                                     const std::function<void(int descriptor)>& check) {
  const auto fail = [&](int error) {
    throw std::system_error(error, std::generic_category(), path.string());
  };
  struct Close {
    void operator()(std::FILE* file) const noexcept { (void)std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail(errno);
  }
  if (check) check(::fileno(file.get()));
  std::string bytes;
  std::array<char, 65536> buffer{};
  while (const auto size = std::fread(buffer.data(), 1, buffer.size(), file.get()))
    bytes.append(buffer.data(), size);
  if (std::ferror(file.get()) != 0) fail(errno);
  return bytes;
}

}  // namespace interlock::core
