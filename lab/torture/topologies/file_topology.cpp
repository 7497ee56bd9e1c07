// Locks in a directory: no server, but a disk that can be full, and people who tidy up.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

#include "conformance/temporary_directory.hpp"
#include "eventually.hpp"
#include "torture/topologies/clock.hpp"
#include "torture/topologies/kinds.hpp"
#include "torture/topologies/last_will.hpp"
#include "torture/topologies/member.hpp"

namespace torture {
namespace {

namespace fs = std::filesystem;

/// A small file system of its own, if root may mount one.
class Disk {
 public:
  Disk() {
    if (::mount("none", path().c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                "size=16m,nr_inodes=4000,mode=0700") == 0)
      unmount_ = std::make_unique<LastWill>("umount -l '" + path().string() + "'");
  }
  [[nodiscard]] const fs::path& path() const { return directory_.path(); }
  [[nodiscard]] bool own() const { return unmount_ != nullptr; }

  void fill() const {
    std::ofstream file(path() / "filler", std::ios::app);
    const std::string block(4096, 'x');
    while (file << block << std::flush) {
    }
  }
  void use_up_inodes() const {
    const auto directory = path() / "inodes";
    ::mkdir(directory.c_str(), 0700);
    for (int i = 0;; ++i) {
      const int fd = ::open((directory / std::to_string(i)).c_str(), O_CREAT | O_CLOEXEC, 0600);
      if (fd < 0) break;
      ::close(fd);
    }
  }
  void free() const {
    fs::remove_all(path() / "filler");
    fs::remove_all(path() / "inodes");
  }
  /// Refused for a moment while somebody has a file open for writing.
  void set_read_only(bool yes) const {
    const auto flags =
        MS_REMOUNT | MS_NOSUID | MS_NODEV | (yes ? static_cast<unsigned long>(MS_RDONLY) : 0UL);
    if (!interlock::testing_support::eventually(
            [&] { return ::mount("none", path().c_str(), "tmpfs", flags, nullptr) == 0; },
            std::chrono::seconds(2)))
      throw std::system_error(errno, std::generic_category(), "remount " + path().string());
  }

 private:
  interlock::TemporaryDirectory directory_;
  std::unique_ptr<LastWill> unmount_;
};

class FileTopology final : public Topology {
 public:
  [[nodiscard]] std::string url() const override { return "file://" + locks().string(); }
  [[nodiscard]] Promise promise() const override {
    return {.shortest_ttl = std::chrono::milliseconds(100), .timeout = false};
  }
  [[nodiscard]] std::vector<std::string> environment() const override {
    return {clock_.variable()};
  }
  [[nodiscard]] std::vector<std::string> left_out() const override {
    if (disk_.own()) return {};
    return {"disk full, no inodes left, disk read-only: only root may mount a file system"};
  }

  std::vector<Fault> faults() override {
    std::vector<Fault> list;
    if (disk_.own()) {
      list.push_back(of_all(
          {.name = "disk full"}, [this](Random&) { disk_.fill(); }, [this] { disk_.free(); }));
      list.push_back(of_all(
          {.name = "no inodes left"}, [this](Random&) { disk_.use_up_inodes(); },
          [this] { disk_.free(); }));
      list.push_back(of_all(
          {.name = "disk read-only"}, [this](Random&) { disk_.set_read_only(true); },
          [this] { disk_.set_read_only(false); }));
    }
    list.push_back(of_all(
        {.name = "directory without rights"}, [this](Random&) { ::chmod(locks().c_str(), 0500); },
        [this] { ::chmod(locks().c_str(), 0700); }));
    append(list, unless_fences_go_back(clock_, {of_all({.name = "directory deleted", .voids = true},
                                                       [this](Random&) { remove_all(); })}));
    list.push_back(of_all(
        {.name = "umask", .disturbs = false},
        [this](Random& random) { umask_ = ::umask(random() % 2 == 0 ? 0 : 0277); },
        [this] { ::umask(umask_); }));
    list.push_back(of_all(
        {.name = "lock file held by a stranger"}, [this](Random& random) { hold_one(random); },
        [this] { let_go(); }));
    list.push_back(busy_processors());
    append(list, clock_faults(clock_, {.disturbs = false}));
    return list;
  }

  FileTopology() = default;
  ~FileTopology() override { let_go(); }

 private:
  [[nodiscard]] fs::path locks() const { return disk_.path() / "locks"; }

  // Others may put files there meanwhile.
  void remove_all() const {
    (void)interlock::testing_support::eventually(
        [this] {
          std::error_code error;
          fs::remove_all(locks(), error);
          return !error;
        },
        std::chrono::seconds(2));
  }
  void hold_one(Random& random) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(locks(), error)) {
      if (entry.path().extension() == ".lock") files.push_back(entry.path());
    }
    if (files.empty()) throw std::runtime_error("there is no lock file yet");
    std::sort(files.begin(), files.end());
    held_ = ::open(files.at(random() % files.size()).c_str(), O_RDONLY | O_CLOEXEC);
    if (!interlock::testing_support::eventually(
            [this] { return ::flock(held_, LOCK_EX | LOCK_NB) == 0; }, std::chrono::seconds(2)))
      throw std::runtime_error("the lock file is never free");
  }
  void let_go() {
    if (held_ >= 0) ::close(std::exchange(held_, -1));
  }

  Disk disk_;
  ServerClock clock_;  ///< of the workers, all of them
  mode_t umask_ = 0;
  int held_ = -1;
};

}  // namespace

Kinds file_kinds() { return {kind<FileTopology>("file")}; }

}  // namespace torture
