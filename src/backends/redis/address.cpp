#include "backends/redis/address.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <new>

#include "core/hosts.hpp"
#include "core/option_file.hpp"
#include "core/settings.hpp"
#include "core/text.hpp"

namespace interlock::redis {

namespace {

using core::refuse_url;

int number(std::string_view text, int most, const char* what) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > most) {
    // What stands there may be a part of a password that has a slash in it.
    refuse_url(std::string(what) + " is a number up to " + std::to_string(most) +
               " (if that is a part of a password: percent-encode it)");
  }
  return value;
}

std::string tls_problem() {
  const auto number = ERR_get_error();
  if (number == 0) return "";
  std::array<char, 256> text{};
  ERR_error_string_n(number, text.data(), text.size());
  return std::string(": ") + text.data();
}

// A key with a passphrase is refused, instead of asking for that at the terminal.
int no_passphrase(char* /*to*/, int /*size*/, int /*writing*/, void* /*ours*/) { return -1; }

// OpenSSL's own way is write(), and that ends the program by SIGPIPE when the server has hung up.
int write_to_socket(BIO* stream, const char* from, int size) {
  int fd = -1;
  BIO_get_fd(stream, &fd);
  BIO_clear_retry_flags(stream);
  const auto put = ::send(fd, from, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (put < 0 && BIO_sock_should_retry(-1) == 1) BIO_set_retry_write(stream);
  return static_cast<int>(put);
}

/// OpenSSL's sockets, but for that.
std::shared_ptr<BIO_METHOD> sockets_without_sigpipe() {
  const auto* plain = BIO_s_socket();
  std::shared_ptr<BIO_METHOD> made(BIO_meth_new(BIO_TYPE_SOCKET, "socket"), BIO_meth_free);
  if (!made) throw std::bad_alloc();
  BIO_meth_set_write(made.get(), write_to_socket);
  BIO_meth_set_read(made.get(), BIO_meth_get_read(plain));
  BIO_meth_set_ctrl(made.get(), BIO_meth_get_ctrl(plain));
  BIO_meth_set_create(made.get(), BIO_meth_get_create(plain));
  BIO_meth_set_destroy(made.get(), BIO_meth_get_destroy(plain));
  return made;
}

}  // namespace

Tls::Tls(const Files& files)
    : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), stream_(sockets_without_sigpipe()) {
  const auto check = [](bool good, const std::string& what) {
    if (!good) throw Error(Errc::invalid, "TLS: " + what + tls_problem());
  };
  check(context_ != nullptr, "can't begin");
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context_.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_default_passwd_cb(context_.get(), no_passphrase);
  if (files.ca.empty()) {
    check(SSL_CTX_set_default_verify_paths(context_.get()) == 1, "the system's certificates");
  } else {
    check(SSL_CTX_load_verify_locations(context_.get(), files.ca.c_str(), nullptr) == 1, files.ca);
  }
  if (files.certificate.empty()) return;
  check(SSL_CTX_use_certificate_chain_file(context_.get(), files.certificate.c_str()) == 1,
        files.certificate);
  const auto& key = files.key.empty() ? files.certificate : files.key;
  const auto hint = files.key.empty()
                        ? " has no private key, and there is no key="
                        : " is no private key of that certificate without a passphrase";
  check(SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) == 1,
        key + hint);
}

std::string Endpoint::to_string() const {
  if (!socket.empty()) return socket;
  return (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + port;
}

Endpoint Endpoint::parse(std::string_view text, const std::string& default_port) {
  Endpoint endpoint{.host = {}, .port = default_port, .socket = {}};
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) refuse_url("a host begins with [ and has no ]");
    endpoint.host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (!text.empty() && !text.starts_with(':')) refuse_url("after ] comes :port, or nothing");
    port = text.empty() ? text : text.substr(1);
  } else {
    const auto colon = std::min(text.find(':'), text.size());
    endpoint.host = text.substr(0, colon);
    if (colon < text.size()) port = text.substr(colon + 1);
  }
  if (endpoint.host.empty()) refuse_url("it needs a host, like redis://localhost:6379");
  if (!port.empty()) endpoint.port = std::to_string(number(port, 65535, "a port"));
  return endpoint;
}

std::optional<std::string> readable_password(const std::vector<Endpoint>& endpoints,
                                             const Access& access, const std::string& scheme) {
  if (access.password.empty() || access.tls) return std::nullopt;
  std::vector<std::string> hosts;
  hosts.reserve(endpoints.size());
  for (const auto& endpoint : endpoints)
    hosts.push_back(endpoint.socket.empty() ? endpoint.host : endpoint.socket);
  return core::readable_password(hosts, scheme);
}

std::vector<std::string_view> Settings::options(std::vector<std::string_view> more) {
  for (const auto* name : {"prefix", "password-file", "password-env", "ca", "cert", "key",
                           "server-name", "timeout", "db"}) {
    more.emplace_back(name);
  }
  return more;
}

int small_number(std::string_view text, const char* what) { return number(text, 1000, what); }

int database_of(std::string_view path) {
  return path.size() < 2 ? 0 : number(path.substr(1), 1 << 20, "the database");
}

Settings Settings::take_from(Url& url, const std::string& default_port) {
  // A release that goes on in the background while the process ends must find OpenSSL in place.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr);
  Settings settings;
  settings.access.user = url.user;
  settings.access.password = core::take_password(url, settings.warnings);
  settings.prefix = url.query.contains("prefix") ? url.take("prefix") : "interlock:";
  const Tls::Files files{
      .ca = url.take("ca"), .certificate = url.take("cert"), .key = url.take("key")};
  using core::Secrecy;
  core::check_file("ca", files.ca, Secrecy::open, settings.warnings);
  core::check_file("cert", files.certificate, files.key.empty() ? Secrecy::secret : Secrecy::open,
                   settings.warnings);
  core::check_file("key", files.key, Secrecy::secret, settings.warnings);
  settings.access.server_name = url.take("server-name");
  settings.access.call_timeout = core::take_timeout(url, settings.access.call_timeout);
  settings.access.connect_timeout =
      std::min(settings.access.connect_timeout, settings.access.call_timeout);
  settings.access.database = number(url.take("db", "0"), 1 << 20, "db");
  const bool tls = url.scheme.starts_with("rediss");
  if (tls) {
    settings.access.tls = std::make_shared<const Tls>(files);
  } else if (!files.ca.empty() || !files.certificate.empty() || !files.key.empty() ||
             !settings.access.server_name.empty()) {
    refuse_url("ca, cert, key and server-name are for TLS: rediss://");
  }
  if (url.scheme == "redis+unix") {
    if (!url.authority.empty() || url.path.empty())
      refuse_url("a socket's path has three slashes: redis+unix:///run/redis/redis.sock");
    settings.endpoints.push_back({.host = {}, .port = {}, .socket = url.path});
    return settings;
  }
  for (const auto host : core::split_hosts(url.authority))
    settings.endpoints.push_back(Endpoint::parse(host, default_port));
  if (settings.endpoints.empty()) refuse_url("it needs a host, like redis://localhost:6379");
  return settings;
}

}  // namespace interlock::redis
