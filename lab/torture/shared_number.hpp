// A number that this process sets, and others see at once.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

namespace torture {

/// Of programs that have `variable()` in their environment, and map the file that it names.
class SharedNumber {
 public:
  SharedNumber(std::string variable, std::filesystem::path file)
      : variable_(std::move(variable)), file_(std::move(file)) {
    const int fd = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    auto* where = MAP_FAILED;
    if (fd >= 0 && ::ftruncate(fd, sizeof(Number)) == 0)
      where = ::mmap(nullptr, sizeof(Number), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (where == MAP_FAILED) throw std::runtime_error("can't map " + file_.string());
    number_ = static_cast<Number*>(where);
  }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;
  ~SharedNumber() { ::munmap(number_, sizeof(Number)); }

  [[nodiscard]] std::string variable() const { return variable_ + "=" + file_.string(); }
  /// Gives what it was.
  std::int64_t set(std::int64_t value) { return number_->exchange(value); }
  [[nodiscard]] std::int64_t value() const { return number_->load(); }

 private:
  using Number = std::atomic<std::int64_t>;

  std::string variable_;
  std::filesystem::path file_;
  Number* number_ = nullptr;
};

}  // namespace torture
