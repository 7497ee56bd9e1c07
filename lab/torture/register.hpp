// What the locks protect: two numbers for each resource. One is guarded by fences, the other is not, so that the
// report can say how many updates a fence saves.
//
// A worker reads a number, works for a while, and writes one more. The server answers one request a line over a
// socket of the round's directory, and writes each write into the history: what its writer had read, what it wrote,
// and whether it was let in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "history.hpp"
#include "interlock/fenced.hpp"

namespace torture {

/// Serves until it is destroyed, on a thread of its own.
class RegisterServer {
 public:
  RegisterServer(const std::filesystem::path& socket, const Log& log);
  RegisterServer(const RegisterServer&) = delete;
  RegisterServer& operator=(const RegisterServer&) = delete;
  ~RegisterServer();

 private:
  void run(const std::stop_token& stop);
  [[nodiscard]] Json answer(const Json& request);

  struct Number {
    interlock::FenceGate gate{};
    std::uint64_t fenced = 0;
    std::uint64_t bare = 0;
  };

  const Log& log_;
  int listener_;
  std::map<std::string, Number> numbers_;
  std::jthread thread_;
};

/// One worker's way to it.
class Register {
 public:
  explicit Register(const std::filesystem::path& socket);
  Register(const Register&) = delete;
  Register& operator=(const Register&) = delete;
  ~Register();

  /// The number, or nothing: refused by the fence.
  std::optional<std::uint64_t> read(const std::string& resource, bool fenced, std::uint64_t fence,
                                    const std::string& owner);
  /// Adds one to what was `seen`. False: refused.
  bool write(const std::string& resource, bool fenced, std::uint64_t fence,
             const std::string& owner, std::uint64_t seen, const std::string& lease);

 private:
  [[nodiscard]] Json ask(const Json& request) const;

  int fd_;
};

}  // namespace torture
