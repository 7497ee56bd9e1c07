// interlock config: what is in force, and whose word it is.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <system_error>

#include "command.hpp"
#include "interlock/backend.hpp"
#include "interlock/mutex.hpp"
#include "show.hpp"
#include "store_view.hpp"
#include "terminal.hpp"

namespace cli {

namespace {

using interlock::Setting;

/// As this command sees it: --url is its code, and it has a default of its own for the store.
std::vector<Setting> in_force(const Common& common) {
  auto settings = common.settings.explain();
  for (auto& setting : settings) {
    if (setting.key != "url") continue;
    if (!common.url.empty()) setting.where = "--url";
    if (setting.value.empty() || !common.settings.distributed_locking()) {
      setting = {.key = setting.key, .value = interlock::user_store_url()};
    }
  }
  return settings;
}

std::string from(const Setting& setting) {
  return setting.where.empty() ? std::string(to_string(setting.origin)) : setting.where;
}

void print(const std::vector<Setting>& settings) {
  int keys = width("SETTING");
  int values = width("VALUE");
  for (const auto& setting : settings) {
    keys = std::max(keys, width(printable(setting.key)));
    values = std::max(values, width(printable(setting.value)));
  }
  const auto line = [&](const std::string& key, const std::string& value,
                        const std::string& where) {
    const auto padded = [](const std::string& text, int columns) {
      return text + std::string(static_cast<std::size_t>(std::max(0, columns - width(text))), ' ');
    };
    std::cout << padded(printable(key), keys) << "  " << padded(printable(value), values) << "  "
              << printable(where) << '\n';
  };
  line("SETTING", "VALUE", "FROM");
  for (const auto& setting : settings)
    line(setting.key, setting.value.empty() ? "-" : setting.value, from(setting));
}

nlohmann::ordered_json to_json(const Common& common, const std::vector<Setting>& settings) {
  nlohmann::ordered_json json{{"file", nullptr}, {"settings", nlohmann::ordered_json::array()}};
  if (!common.settings.file().empty()) json["file"] = common.settings.file().string();
  for (const auto& setting : settings) {
    json["settings"].push_back({{"key", setting.key},
                                {"value", setting.value},
                                {"origin", to_string(setting.origin)},
                                {"where", setting.where}});
  }
  return json;
}

// A directory that can be read answers, and yet nothing can be locked there.
void check_writable(const std::string& store, const interlock::Url& url) {
  if (::access(url.path.c_str(), W_OK) == 0) return;
  throw interlock::Error(
      interlock::Errc::refused,
      "can't write to the directory " + url.path + ": " + std::generic_category().message(errno) +
          ", so nothing can be locked there; name a directory where you may write",
      {.resource = {}, .node = store, .maybe_held = false});
}

// Of a server, the rights to look may be there and those to lock may not. Only a lock can tell: on a name that nobody uses,
// and where another check has it just now, the answer is as good.
void check_lockable(const interlock::Client& client) {
  const interlock::Mutex mutex(client, "interlock config --check",
                               {.ttl = std::chrono::seconds(5),
                                .label = "interlock config --check",
                                .retry = interlock::Retry::none()});
  if (auto lease = mutex.try_acquire()) (void)lease->release();
}

}  // namespace

int config(const Arguments& arguments) {
  bool json = false;
  bool check = false;
  Parser parser(
      "config [OPTIONS]",
      "Shows every setting, its value without secrets, and where it comes from: the command\n"
      "line, the settings file, the environment, or nowhere (default).",
      "  interlock config\n  interlock config --check\n"
      "  interlock --config /etc/app/interlock.json config --json\n");
  parser.add_flag("--check", check,
                  "Also ask the store; exit status 69 if nothing can be locked there");
  parser.add_json(json);
  parser.read(arguments);
  const auto settings = in_force(parser.common);
  auto object = to_json(parser.common, settings);
  if (!json) print(settings);
  if (!check) {
    if (json) print_json(object);
    return kOk;
  }
  try {
    std::string found;
    if (not_made_yet(parser.common)) {
      found = "the store " + shown_url(parser.common, interlock::user_store_url()) +
              " does not exist yet; the first lock makes its directory";
    } else {
      const auto client = open_store(parser.common);
      const auto url = interlock::Url::parse(store_url(parser.common));
      const auto seen = client.inspect({.resources = {"interlock"}});
      found = "the store " + client.traits().where + " answers";
      if (!seen.made) {
        if (seen.unmakeable) throw interlock::Error(*seen.unmakeable);
        found += "; it has no schema yet, and the first lock makes it";
      } else if (url.scheme == "file") {
        check_writable(client.traits().where, url);
      } else {
        check_lockable(client);
      }
    }
    object["reachable"] = true;
    if (!json) std::cout << '\n' << printable(found) << '\n';
  } catch (const interlock::Error& error) {
    object["reachable"] = false;
    object["error"] = error.what();
    if (json) print_json(object);
    std::cout << std::flush;
    throw;
  }
  if (json) print_json(object);
  return kOk;
}

}  // namespace cli
