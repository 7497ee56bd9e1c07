#include "backends/postgres/settings.hpp"

#include <openssl/sha.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>

#include "core/hosts.hpp"
#include "core/option_file.hpp"
#include "core/settings.hpp"
#include "core/text.hpp"

namespace interlock::postgres {

namespace {

using core::refuse_url;

// As libpq has it.
std::string usual_port() {
  const char* port = std::getenv("PGPORT");
  return port == nullptr || *port == '\0' ? "5432" : port;
}

std::pair<std::string, std::string> host_of(std::string_view text) {
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) refuse_url("a host begins with [ and has no ]");
    host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (!text.empty() && !text.starts_with(':')) refuse_url("after ] comes :port, or nothing");
    port = text.empty() ? text : text.substr(1);
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.empty()) refuse_url("it needs a host, like postgres://localhost/app");
  const auto usual = usual_port();
  if (port.empty()) port = usual;
  int value = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), value);
  if (error != std::errc{} || end != port.data() + port.size() || value < 1 || value > 65535) {
    // What stands there may be a part of a password that has a slash in it.
    refuse_url(
        "a port is a number up to 65535 (if that is a part of a password: percent-encode it)");
  }
  return {std::string(host), std::string(port)};
}

Settings::Hosts hosts_of(std::string_view text) {
  Settings::Hosts hosts;
  for (const auto host : core::split_hosts(text)) hosts.push_back(host_of(host));
  return hosts;
}

// Libpq's own default would be TLS if the server has it, and otherwise none, without a word.
constexpr auto kLibpqDefault = "prefer";

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// What libpq makes of these together with a service file and the environment. Nothing is connected: it stops at a
// setting that makes no sense.
std::map<std::string, std::string> as_libpq_reads(const Link::Keywords& keywords,
                                                  const Settings::Hosts& hosts) {
  auto all = keywords;
  std::string names;
  for (const auto& [host, port] : hosts) names += (names.empty() ? "" : ",") + host;
  if (!names.empty()) all.emplace_back("host", names);
  all.emplace_back("ssl_min_protocol_version", "none");
  std::vector<const char*> words;
  std::vector<const char*> values;
  for (const auto& [word, value] : all) {
    words.push_back(word.c_str());
    values.push_back(value.c_str());
  }
  words.push_back(nullptr);
  values.push_back(nullptr);
  const std::unique_ptr<PGconn, decltype(&PQfinish)> never(
      PQconnectStartParams(words.data(), values.data(), 0), PQfinish);
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfo(never.get()), PQconninfoFree);
  std::map<std::string, std::string> read;
  for (const auto* option = options.get(); option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val != nullptr) read[option->keyword] = option->val;
  }
  return read;
}

bool all_here(const std::map<std::string, std::string>& read) {
  const auto list = [&](const char* keyword) {
    const auto it = read.find(keyword);
    std::vector<std::string> items;
    std::string_view rest = it == read.end() ? std::string_view{} : it->second;
    if (rest.empty()) return items;
    for (;;) {
      items.emplace_back(rest.substr(0, rest.find(',')));
      if (items.back().size() == rest.size()) return items;
      rest.remove_prefix(items.back().size() + 1);
    }
  };
  auto hosts = list("host");
  const auto addresses = list("hostaddr");
  hosts.resize(std::max(hosts.size(), addresses.size()));
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (!addresses[i].empty()) hosts[i] = addresses[i];
  }
  // Where there is none, it is a Unix socket (also one without a file, which begins with @).
  return std::all_of(hosts.begin(), hosts.end(), [](const std::string& host) {
    return host.empty() || host.starts_with('@') || core::is_this_machine(host);
  });
}

// With TLS, unless the server is on this machine, or somebody has said otherwise: the URL, a service or PGSSLMODE.
Link::Keywords with_tls(Link::Keywords keywords, const Settings::Hosts& hosts) {
  const bool said = is_set("PGSSLMODE") ||
                    std::any_of(keywords.begin(), keywords.end(),
                                [](const auto& keyword) { return keyword.first == "sslmode"; });
  if (said) return keywords;
  const auto read = as_libpq_reads(keywords, hosts);
  const auto mode = read.find("sslmode");
  const bool unknown = mode == read.end();  // also when it can't be connected
  if (unknown || (mode->second == kLibpqDefault && !all_here(read)))
    keywords.emplace_back("sslmode", "require");
  return keywords;
}

constexpr std::array kOwn = {"mode", "prefix",        "timeout",      "listen", "pooler",
                             "wait", "password-file", "password-env", "host",   "port"};
// Those of libpq that make sense here.
constexpr std::array kLibpq = {"sslmode",
                               "sslrootcert",
                               "sslcert",
                               "sslkey",
                               "sslcrl",
                               "sslsni",
                               "ssl_min_protocol_version",
                               "gssencmode",
                               "channel_binding",
                               "passfile",
                               "service"};

template <std::size_t Size>
std::string one_of(Url& url, const char* option, const std::array<const char*, Size>& choices) {
  auto value = url.take(option, choices.front());
  if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    std::string all;
    for (const auto* choice : choices) all += (all.empty() ? "" : ", ") + std::string(choice);
    refuse_url(std::string(option) + " is one of: " + all);
  }
  return value;
}

}  // namespace

Settings Settings::from(Url url) {
  // A release that goes on in the background while the process ends must find OpenSSL in place.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  Settings settings;
  settings.kind = one_of(url, "mode", std::array{"advisory", "lease"}) == "lease" ? Kind::lease
                                                                                  : Kind::advisory;
  settings.session_pooler = one_of(url, "pooler", std::array{"none", "session"}) == "session";
  if (const auto wait = one_of(url, "wait", std::array{"auto", "listen", "block"}); wait != "auto")
    settings.waiting = wait == "listen" ? Waiting::told : Waiting::blocks;
  settings.prefix = url.query.contains("prefix") ? url.take("prefix") : "interlock:";
  check_text("the prefix", settings.prefix);
  settings.call_timeout = core::take_timeout(url, settings.call_timeout);
  if (const auto listen = url.take("listen"); listen == "off") {
    settings.polls = true;
  } else {
    settings.listen = hosts_of(listen);
  }
  if (settings.kind == Kind::advisory && (settings.polls || !settings.listen.empty()))
    refuse_url("listen is for mode=lease");
  if (settings.kind == Kind::lease && settings.session_pooler)
    refuse_url("pooler is for advisory mode; mode=lease works through any");
  if (settings.kind == Kind::lease && settings.waiting != Waiting::both)
    refuse_url("wait is for advisory mode");
  // Each of its connections may be one that somebody else then lacks.
  if (settings.session_pooler && settings.waiting == Waiting::both)
    settings.waiting = Waiting::told;

  // What follows is shown in errors. It must not be a password that got there by mistake.
  if (url.authority.empty() && !url.path.empty() && !url.path.starts_with('/'))
    refuse_url("write postgres://host/database");
  if (url.path.find('@') != std::string::npos) {
    refuse_url(
        "there is an @ in the name of the database: write postgres://user:password@host/database, "
        "and "
        "percent-encode what else is in the password than letters and digits");
  }
  const auto socket = url.take("host");  // a Unix socket's directory, as libpq writes it
  const auto port = url.take("port");    // and its port
  if (!socket.empty() && !url.authority.empty()) refuse_url("it names its host twice");
  if (socket.empty() && !port.empty()) refuse_url("port goes with host=; else write host:port");
  settings.hosts = socket.empty() ? hosts_of(url.authority)
                                  : Hosts{{socket, port.empty() ? usual_port() : port}};
  if (!socket.empty() && !socket.starts_with('/'))
    settings.hosts = hosts_of(port.empty() ? socket : socket + ":" + port);

  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) settings.keywords.emplace_back(name, std::move(value));
  };
  const auto sslmode = url.query.contains("sslmode") ? url.query["sslmode"] : std::string();
  constexpr std::array<std::string_view, 7> kModes{"",        "disable",   "allow",      "prefer",
                                                   "require", "verify-ca", "verify-full"};
  if (std::find(kModes.begin(), kModes.end(), sslmode) == kModes.end())
    refuse_url("sslmode is one of: disable, allow, prefer, require, verify-ca, verify-full");
  auto database = url.path.empty() ? url.path : url.path.substr(1);
  add("user", url.user);
  add("password", core::take_password(url, settings.warnings));
  add("dbname", database);
  for (const auto* name : {"sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile"}) {
    if (url.query.contains(name))
      core::check_file(name, url.query[name], core::Secrecy::open, settings.warnings);
  }
  for (const auto* name : kLibpq) add(name, url.take(name));
  add("application_name", kTitle);
  add("client_encoding", "UTF8");
  add("target_session_attrs", "read-write");
  // A cable that was pulled is noticed well within the usual TTL.
  add("keepalives_idle", "5");
  add("keepalives_interval", "2");
  add("keepalives_count", "3");
  add("tcp_user_timeout", "10000");

  settings.listen_keywords =
      with_tls(settings.keywords, settings.listen.empty() ? settings.hosts : settings.listen);
  settings.keywords = with_tls(std::move(settings.keywords), settings.hosts);

  std::vector<std::string_view> known(kOwn.begin(), kOwn.end());
  known.insert(known.end(), kLibpq.begin(), kLibpq.end());
  url.expect_all_taken(known);

  settings.where = url.scheme + "://";
  for (std::size_t i = 0; i < settings.hosts.size(); ++i) {
    const auto& [host, number] = settings.hosts[i];
    if (i > 0) settings.where += ",";
    settings.where += host;
    settings.where += ":" + number;
  }
  if (!database.empty()) settings.where += "/" + database;
  if (settings.kind == Kind::lease) settings.where += "?mode=lease";
  return settings;
}

std::int64_t id_of(std::string_view prefix, std::string_view name) {
  std::string whole(prefix);
  whole += name;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(whole.data()), whole.size(), digest.data());
  std::uint64_t id = 0;
  for (std::size_t i = 0; i < sizeof(id); ++i) id = id << 8U | digest[i];
  return static_cast<std::int64_t>(id);
}

}  // namespace interlock::postgres
