// What the tests of the file store share: a directory that goes away, calls that wait for their
// answer, other processes, and a place where wake-ups arrive.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "backends/file/shard.hpp"
#include "interlock/stores.hpp"

namespace interlock::file_test {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Far longer than anything takes: reached only when something is broken.
inline constexpr auto kGenerous = 20s;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "interlock-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

inline std::string data_of(const std::string& resource) {
  return file::data_name(file::shard_of(resource));
}
inline std::string lock_of(const std::string& resource) {
  return file::lock_name(file::shard_of(resource));
}

inline std::shared_ptr<const Who> who(std::int64_t pid, std::string label = "test") {
  return std::make_shared<const Who>(
      Who{.label = std::move(label), .identity = {}, .host = "here", .pid = pid});
}

inline Claim claim_on(const std::vector<std::string>& resources, std::int64_t pid = ::getpid()) {
  Claim claim{.owner = Owner::random(), .parts = {}, .ttl = 60s, .who = who(pid)};
  for (const auto& resource : resources) claim.parts.push_back({.resource = resource});
  normalize(claim.parts, false);
  return claim;
}

/// A store, and calls on the calling thread.
class Store {
 public:
  explicit Store(const fs::path& path) : backend_(file_store(path)) {
    backend_->on_wake([this](const Owner& owner) {
      {
        const std::lock_guard lock(mutex_);
        woken_.push_back(owner);
      }
      changed_.notify_all();
    });
  }

  Answer acquire(const Claim& claim, bool queue = false) {
    return wait([&](Reply reply) { backend_->acquire(claim, queue, here(), std::move(reply)); });
  }
  Answer renew(const Claim& claim) {
    return wait([&](Reply reply) { backend_->renew(claim, here(), std::move(reply)); });
  }
  Answer release(const Claim& claim) {
    return wait([&](Reply reply) { backend_->release(claim, here(), std::move(reply)); });
  }
  Snapshot inspect(const Query& query = {}) {
    Snapshot result;
    backend_->inspect(query, here(), [&](Snapshot snapshot) { result = std::move(snapshot); });
    return result;
  }
  std::size_t holders(const std::string& resource) {
    const auto snapshot = inspect({.resources = {resource}});
    return snapshot.resources.empty() ? 0 : snapshot.resources.front().holders.size();
  }

  bool woken(const Owner& owner, Duration within) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, within, [&] {
      return std::find(woken_.begin(), woken_.end(), owner) != woken_.end();
    });
  }
  std::size_t wakes() {
    const std::lock_guard lock(mutex_);
    return woken_.size();
  }

  Backend& backend() { return *backend_; }
  static Call here() { return {.deadline = TimePoint::max(), .caller_waits = true}; }

 private:
  template <class Make>
  Answer wait(Make make) {
    Answer result;
    int answers = 0;
    make([&](Answer answer) {
      result = std::move(answer);
      ++answers;
    });
    EXPECT_EQ(answers, 1) << "a call with caller_waits answers before it returns";
    return result;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Owner> woken_;
  std::unique_ptr<Backend> backend_;  // last: no wake-up comes after it is gone
};

/// Another process, which runs `work` and then says so and sleeps until it is killed.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      work();
      [[maybe_unused]] const auto put = ::write(ends[1], "r", 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char byte = 0;
    ready_ = ::read(ends[0], &byte, 1) == 1;
    ::close(ends[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill() const { ::kill(pid_, SIGKILL); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  bool ready_ = false;
};

}  // namespace interlock::file_test
