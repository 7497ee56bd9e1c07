// interlock repair: mends a file store that was damaged.
#include <iostream>

#include "command.hpp"
#include "interlock/backend.hpp"
#include "interlock/stores.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

int repair(const Arguments& arguments) {
  bool dry_run = false;
  Parser parser(
      "repair [OPTIONS]",
      "Sets aside the damaged files of a file store, so that its locks work again. Locks that\n"
      "were held in a damaged file are lost; the others are left alone.",
      "  interlock repair --dry-run\n  interlock repair --url file:///var/lib/app/locks\n");
  parser.add_flag("--dry-run", dry_run, "Only print what would be done");
  parser.read(arguments);
  const auto url = interlock::Url::parse(store_url(parser.common));
  if (url.scheme != "file") {
    throw UsageError(url.to_string() + ": only a file store can be repaired");
  }
  check_exists(parser.common);
  if (not_made_yet(parser.common)) {
    std::cout << "nothing to repair: " << url.to_string() << " does not exist yet\n";
    return kOk;
  }
  const auto lines = interlock::repair_file_store(url.path, dry_run);
  for (const auto& line : lines) std::cout << printable(line) << '\n';
  return kOk;
}

}  // namespace cli
