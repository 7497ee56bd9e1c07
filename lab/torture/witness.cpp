#include "witness.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include "interlock/client.hpp"
#include "spawn.hpp"

namespace torture {

namespace {

constexpr auto kPause = std::chrono::milliseconds(20);
constexpr std::int64_t kLate = 50'000'000;

}  // namespace

Witness::Witness(const std::filesystem::path& directory, const Log& log)
    : log_(log),
      file_(::open((directory / "witness").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) {
  std::array<int, 2> to{};
  std::array<int, 2> from{};
  if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe for the witness");
  echo_ = spawn({.program = "cat", .words = {"cat"}, .input = to[0], .output = from[1]});
  ::close(to[0]);
  ::close(from[1]);
  asks_ = to[1];
  hears_ = from[0];
  if (echo_ == 0) throw std::runtime_error("the witness can't be started");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Witness::~Witness() {
  thread_.request_stop();
  thread_.join();
  ::close(asks_);  // and cat ends
  ::waitpid(echo_, nullptr, 0);
  ::close(hears_);
  ::close(file_);
}

void Witness::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto from = now();
    char byte = '.';
    if (::write(asks_, &byte, 1) != 1 || ::read(hears_, &byte, 1) != 1) return;
    if (::pwrite(file_, &byte, 1, 0) == 1) (void)::fdatasync(file_);
    std::this_thread::sleep_for(kPause);
    if (now() - from > kLate) log_.add("stall", {{"from", from}});
  }
}

StoreWitness::StoreWitness(std::string url, std::string name, const Log& log)
    : url_(std::move(url)),
      name_(std::move(name)),
      log_(log),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void StoreWitness::run(const std::stop_token& stop) const {
  std::optional<interlock::Client> client;
  while (!stop.stop_requested()) {
    const auto from = now();
    try {
      if (!client) client = interlock::connect(url_);
      (void)client->inspect({.resources = {name_}});
    } catch (const interlock::Error&) {
      // Late or refused: how long it took is what counts.
    }
    std::this_thread::sleep_for(kPause);
    if (now() - from > kLate) log_.add("stall", {{"from", from}});
  }
}

}  // namespace torture
