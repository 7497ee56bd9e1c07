// holder URL NAME TTL [exclusive|shared]: takes the lock, says "held FENCE", and does what it is
// told, line by line. "lost" appears when the lease is lost. NAME "-": takes nothing until it is
// told.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "interlock/interlock.hpp"
#include "say.hpp"

// A forked child leaves its parent's client alone, which looks like a leak.
extern "C" const char* __lsan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_options() { return "detect_leaks=0"; }

namespace {

class Holder {
 public:
  explicit Holder(const std::string& url) : locks_(interlock::connect(url)) {}

  void hold(interlock::Lease lease) {
    on_lost_.reset();
    lease_ = std::move(lease);
    say("held " + std::to_string(lease_.fence().value));
    on_lost_.emplace(lease_.lost(), [] { say("lost"); });
  }

  void take(const std::string& name, const std::string& ttl, bool shared) {
    name_ = name;
    const interlock::RwLock lock(locks_, name, {.ttl = interlock::parse_duration(ttl)});
    hold(shared ? lock.read() : lock.write());
  }

  void obey(const std::string& command) {
    if (command == "state") {
      say("state " + std::string(to_string(lease_.state())));
    } else if (command == "release") {
      say("release " + std::string(to_string(lease_.release())));
    } else if (command == "detach") {
      say("token " + lease_.detach());
    } else if (command.starts_with("adopt ")) {
      hold(locks_.adopt(command.substr(6)));
    } else if (command.starts_with("do ")) {
      say("did " + output_of(command.substr(3)));
    } else if (command == "fork") {
      fork_a_child();
    } else if (command == "exit") {
      std::exit(0);
    }
  }

 private:
  // A command that sends the fence along, as work that the lock protects would.
  [[nodiscard]] std::string output_of(const std::string& command) const {
    setenv("FENCE", std::to_string(lease_.fence().value).c_str(), 1);
    setenv("OWNER", lease_.owner().brief().c_str(), 1);
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>&1").c_str(), "r"),
                                                     pclose);
    std::string text;
    for (int c = 0; pipe && (c = std::getc(pipe.get())) != EOF;)
      text += c == '\n' ? ' ' : static_cast<char>(c);
    return text;
  }

  // The child looks at what it inherited, destroys it, and ends in an orderly way.
  void fork_a_child() {
    const auto child = fork();
    if (child == 0) {
      say("child " + std::string(to_string(lease_.state())));
      try {
        static_cast<void>(interlock::Mutex(locks_, name_).try_acquire());
        say("child was served");
      } catch (const interlock::Error& error) {
        say(error.errc() == interlock::Errc::forked ? "child was refused" : error.what());
      }
      on_lost_.reset();
      lease_ = {};
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    say("forked " + std::to_string(status));
  }

  interlock::Client locks_;
  std::string name_;
  interlock::Lease lease_;
  std::optional<std::stop_callback<void (*)()>> on_lost_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  Holder holder(argv[1]);
  const std::string name = argv[2];
  if (name != "-") holder.take(name, argv[3], argc > 4 && std::string(argv[4]) == "shared");
  std::string command;
  while (std::getline(std::cin, command)) holder.obey(command);
}
