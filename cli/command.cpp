#include "command.hpp"

#include <algorithm>
#include <iostream>

#include "full_program.hpp"
#include "secrets.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

class Help : public CLI::Formatter {
 public:
  explicit Help(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "\nUsage: interlock " + usage_ + "\n";
  }
  // What an option takes; its limits and what it excludes are told to those who get it wrong.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const auto name = option->get_type_name();  // TYPE:LIMITS
    const auto bracket = name.rfind(']');       // as in [HOST:]PORT
    return " " + name.substr(0, name.find(':', bracket == std::string::npos ? 0 : bracket));
  }

 private:
  std::string usage_;
};

}  // namespace

Parser::Parser(const std::string& usage, const std::string& description,
               const std::string& examples)
    : CLI::App(description), command_(usage.substr(0, usage.find(" ["))), usage_(usage) {
  set_help_flag("-h,--help", "Show this help");
  footer(examples.empty() ? "" : "Examples:\n" + examples);
  allow_extras();
  add_common(*this, common);
}

void Parser::add_names(std::vector<std::string>& names, const std::string& what,
                       const std::string& title) {
  names_ = &names;
  usage_ += "\n\n  " + title + std::string(28 - title.size(), ' ') + what;
}

void Parser::add_json(bool& json) {
  add_flag("--json", json, "Print JSON, as interlock(1) documents it");
}

void Parser::read(const Arguments& given) {
  auto arguments = given.before;
  const auto separator = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> literal(separator == arguments.end() ? separator : separator + 1,
                                   arguments.end());
  arguments.erase(separator, arguments.end());
  formatter(std::make_shared<Help>(usage_));
  get_formatter()->column_width(30);
  try {
    std::reverse(arguments.begin(), arguments.end());
    parse(std::move(arguments));
    for (auto& word : remaining()) {
      if (word.size() > 1 && word.front() == '-') refuse_option(word);
      if (names_ == nullptr) throw CLI::ExtrasError({word});
      names_->push_back(std::move(word));
    }
    if (names_ != nullptr) names_->insert(names_->end(), literal.begin(), literal.end());
  } catch (const CLI::CallForHelp&) {
    std::cout << help();
    throw HelpShown();
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + " (see: interlock " + command_ + " --help)");
  }
  check_settings_file(common);
  load_settings(common);
  check_program(common);
  if (common.url.empty()) *given.store_set_by = common.settings.explain().front().where;
  start_logging(common.log);
  if (const auto& skipped = common.settings.skipped_file(); !skipped.empty()) {
    if (common.log.level) {
      log_warning(common.log, "warned", skipped);
    } else {
      complain("warning: " + skipped);
    }
  }
  const bool own = std::any_of(given.before.begin(), given.before.end(), [](const auto& word) {
    return word.starts_with("--member=");  // of a simulation, whose first process has said it
  });
  if (has_password(common.url) && !own) {
    complain(
        "warning: other users could see the password in --url for a moment, and a shell keeps "
        "it in its history; put ?password-file= or ?password-env= into the URL instead");
  }
}

void Parser::refuse_option(const std::string& word) const {
  std::vector<std::string> names;
  for (const auto* option : get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  const auto name = word.substr(0, word.find('='));
  const auto nearest = interlock::detail::nearest(name, {names.begin(), names.end()});
  throw UsageError("there is no option " + name +
                   (nearest.empty() ? "" : "; did you mean " + std::string(nearest) + "?") +
                   " (see: interlock " + command_ + " --help)");
}

bool takes_value(const std::string& word) {
  return word == "--url" || word == "--config" || word == "--log-level" || word == "--log-format";
}

std::string set_by(const Arguments& arguments) {
  const auto& where = *arguments.store_set_by;
  return where.empty() ? "" : "This store was set by " + printable(where) + "\n";
}

std::string line_of_stdin(std::size_t most) {
  std::string line;
  for (char c = 0; std::cin.get(c) && c != '\n';) {
    if (line.size() == most)
      throw UsageError("the first line of stdin has more than " + std::to_string(most) +
                       " bytes, which is too long for a token or an answer");
    line += c;
  }
  return line;
}

void complain(const std::string& message, std::chrono::milliseconds patience) {
  constexpr int kLongest = 4096;  // it may quote a word of the command line, and that has 128 KiB
  auto shown = printable(message);
  if (width(shown) > kLongest) shown = printable(shown, kLongest) + "…";
  write_error("interlock: " + shown + "\n", patience);
}

}  // namespace cli
