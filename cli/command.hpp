// The commands, and what all of them share: how arguments are read and how errors are told.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "options.hpp"
#include "standard_error.hpp"

namespace cli {

/// What was typed after the name of the command.
struct Arguments {
  std::vector<std::string> before;  ///< for run: up to the first "--"; for the others: all
  std::vector<std::string> after;   ///< for run: the rest
  bool separated = false;           ///< there was a "--"
  /// Filled in by Parser::read: where the store's URL stands, if not on the command line.
  std::shared_ptr<std::string> store_set_by = std::make_shared<std::string>();
};

int run(const Arguments& arguments);
int acquire(const Arguments& arguments);
int extend(const Arguments& arguments);
int release(const Arguments& arguments);
int who(const Arguments& arguments);
int list(const Arguments& arguments);
int watch(const Arguments& arguments);
int top(const Arguments& arguments);
int serve(const Arguments& arguments);
int deadlocks(const Arguments& arguments);
int break_lock(const Arguments& arguments);
int repair(const Arguments& arguments);
int schema(const Arguments& arguments);
int config(const Arguments& arguments);
int bench(const Arguments& arguments);
int simulate(const Arguments& arguments);
int torture_store(const Arguments& arguments);

/// One of the options that may stand before the command, and its value is the next word.
bool takes_value(const std::string& word);

/// The command line makes no sense; the message says how it would.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Something else than the store or the command line; the message says what to do.
struct Failure : std::runtime_error {
  Failure(int exit_status, const std::string& message)
      : std::runtime_error(message), status(exit_status) {}
  int status;
};
/// Help was asked for, and given.
struct HelpShown {};

/// One command's options. Every command gets its own parser, so that a lock may have the name of
/// a command.
class Parser : public CLI::App {
 public:
  /// `usage`: what follows "interlock", as in "who [OPTIONS] NAME…".
  Parser(const std::string& usage, const std::string& description, const std::string& examples);

  /// Where the words go that are no options, taken literally. (CLI11 itself would make two of
  /// "[a,b]".)
  void add_names(std::vector<std::string>& names, const std::string& what,
                 const std::string& title = "NAME");
  void add_json(bool& json);

  /// Throws UsageError or HelpShown. Reads the settings, too, and starts the log.
  void read(const Arguments& given);

  Common common;

 private:
  [[noreturn]] void refuse_option(const std::string& word) const;

  std::string command_;
  std::string usage_;
  std::vector<std::string>* names_ = nullptr;
};

/// "This store was set by INTERLOCK_URL", with the end of the line; nothing for --url, and by default.
std::string set_by(const Arguments& arguments);

/// The first line of stdin. Throws UsageError if it has more bytes than that.
std::string line_of_stdin(std::size_t most);

/// "interlock: …" on stderr, one line. Dropped if nobody reads stderr.
void complain(const std::string& message, std::chrono::milliseconds patience = kMessagePatience);

}  // namespace cli
