#include "command.hpp"

#include <algorithm>
#include <iostream>

#include "terminal.hpp"

namespace cli {

namespace {

class Help : public CLI::Formatter {
 public:
  explicit Help(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: interlock " + usage_ + "\n";
  }

 private:
  std::string usage_;
};

}  // namespace

Parser::Parser(const std::string& usage, const std::string& description,
               const std::string& examples)
    : CLI::App(description), command_(usage.substr(0, usage.find(' '))) {
  formatter(std::make_shared<Help>(usage));
  get_formatter()->column_width(30);
  set_help_flag("-h,--help", "Show this");
  footer(examples.empty() ? "" : "Examples:\n" + examples);
  add_common(*this, common);
}

CLI::Option* Parser::add_names(std::vector<std::string>& names, const std::string& what,
                               const std::string& title) {
  // Without allow_extra_args(false), "[a,b]" would be two names.
  return add_option(title, names, what)->type_name("")->expected(-1)->allow_extra_args(false);
}

void Parser::add_json(bool& json) { add_flag("--json", json, "For programs; see interlock(1)"); }

void Parser::read(std::vector<std::string> arguments) {
  try {
    std::reverse(arguments.begin(), arguments.end());
    parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::cout << help();
    throw HelpShown();
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (see: interlock " + command_ + " --help)");
  }
  start_logging(common.verbose);
}

void complain(const std::string& message) {
  std::cerr << "interlock: " + printable(message) + "\n" << std::flush;
}

}  // namespace cli
