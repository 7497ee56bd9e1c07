#include "backends/redis/address.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <charconv>

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

template <class Object, void (*Free)(Object*)>
struct Freed {
  void operator()(Object* object) const { Free(object); }
};
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO, BIO_vfree>>;

Memory reading(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key with a passphrase is refused, instead of asking for that at the terminal.
int no_passphrase(char* /*to*/, int /*size*/, int /*writing*/, void* /*ours*/) { return -1; }

Certificate next_certificate(BIO* from) {
  return Certificate(PEM_read_bio_X509(from, nullptr, no_passphrase, nullptr));
}

// Whom to believe: all certificates of the text, and what they have revoked.
bool trust(X509_STORE* store, const std::string& text) {
  const auto from = reading(text);
  STACK_OF(X509_INFO)* all = PEM_X509_INFO_read_bio(from.get(), nullptr, no_passphrase, nullptr);
  int found = 0;
  for (int i = 0; i < sk_X509_INFO_num(all); ++i) {
    const auto* each = sk_X509_INFO_value(all, i);
    if (each->x509 != nullptr) found += X509_STORE_add_cert(store, each->x509);
    if (each->crl != nullptr) X509_STORE_add_crl(store, each->crl);
  }
  sk_X509_INFO_pop_free(all, X509_INFO_free);
  return found > 0;
}

// Our certificate, and those between it and whom the server believes.
bool present(SSL_CTX* context, const std::string& text) {
  const auto from = reading(text);
  const auto ours = next_certificate(from.get());
  if (!ours || SSL_CTX_use_certificate(context, ours.get()) != 1) return false;
  while (const auto more = next_certificate(from.get())) {
    if (SSL_CTX_add1_chain_cert(context, more.get()) != 1) return false;
  }
  ERR_clear_error();  // that of the end
  return true;
}

bool use_key(SSL_CTX* context, const std::string& text) {
  const auto from = reading(text);
  const Key key(PEM_read_bio_PrivateKey(from.get(), nullptr, no_passphrase, nullptr));
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1 &&
         SSL_CTX_check_private_key(context) == 1;
}

}  // namespace

Tls::Tls(const Files& files) : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
  const auto check = [](bool good, const std::string& what) {
    if (!good) throw Error(Errc::invalid, "TLS: " + what + tls_problem());
  };
  check(context_ != nullptr, "can't begin");
  SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context_.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (files.ca.text.empty()) {
    check(SSL_CTX_set_default_verify_paths(context_.get()) == 1, "the system's certificates");
  } else {
    check(trust(SSL_CTX_get_cert_store(context_.get()), files.ca.text),
          files.ca.path + " has no certificate");
  }
  if (files.certificate.text.empty()) return;
  const auto& certificate = files.certificate;
  check(present(context_.get(), certificate.text), certificate.path + " has no certificate");
  if (files.key.text.empty()) {
    check(use_key(context_.get(), certificate.text),
          certificate.path + " has no private key, and there is no key=");
  } else {
    check(use_key(context_.get(), files.key.text),
          files.key.path + " has no private key without a passphrase, or not that of " +
              certificate.path);
  }
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
  using core::Secrecy;
  const bool has_key = url.query.contains("key") && !url.query["key"].empty();
  const auto take = [&](const char* option, Secrecy secrecy) {
    auto path = url.query.contains(option) ? url.query[option] : std::string();
    return Tls::File{.path = std::move(path),
                     .text = core::take_file(url, option, secrecy, settings.warnings)};
  };
  const Tls::Files files{.ca = take("ca", Secrecy::open),
                         .certificate = take("cert", has_key ? Secrecy::open : Secrecy::secret),
                         .key = take("key", Secrecy::secret)};
  settings.access.server_name = url.take("server-name");
  settings.access.call_timeout = core::take_timeout(url, settings.access.call_timeout);
  settings.access.connect_timeout =
      std::min(settings.access.connect_timeout, settings.access.call_timeout);
  settings.access.database = number(url.take("db", "0"), 1 << 20, "db");
  const bool tls = url.scheme.starts_with("rediss");
  if (tls) {
    settings.access.tls = std::make_shared<const Tls>(files);
  } else if (!files.ca.text.empty() || !files.certificate.text.empty() || !files.key.text.empty() ||
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
