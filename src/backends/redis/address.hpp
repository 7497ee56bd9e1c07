// Where a Redis server is and how to get in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "interlock/backend.hpp"

struct bio_method_st;
struct ssl_ctx_st;

namespace interlock::redis {

/// Certificates, checked and loaded once for all connections.
class Tls {
 public:
  struct Files {
    std::string ca;  ///< empty: the system's
    std::string certificate;
    std::string key;  ///< empty: it stands beside the certificate
  };
  /// Throws Error (invalid) that names the file.
  explicit Tls(const Files& files);
  [[nodiscard]] ssl_ctx_st* context() const noexcept { return context_.get(); }
  /// How connections read and write their sockets: without SIGPIPE.
  [[nodiscard]] const bio_method_st* stream() const noexcept { return stream_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  std::shared_ptr<bio_method_st> stream_;
};

struct Endpoint {
  std::string host{};
  std::string port{};
  std::string socket{};  ///< a Unix socket instead

  [[nodiscard]] std::string to_string() const;
  bool operator==(const Endpoint&) const = default;
  auto operator<=>(const Endpoint&) const = default;

  /// "host", "host:port", "[::1]:port". Throws Error (invalid).
  static Endpoint parse(std::string_view text, const std::string& default_port);
};

struct Access {
  std::string user{};
  std::string password{};
  int database = 0;
  std::shared_ptr<const Tls> tls{};
  std::string server_name{};  ///< to verify and to ask for; empty: the host
  Duration connect_timeout = std::chrono::seconds(3);
  Duration call_timeout = std::chrono::seconds(5);
};

/// A warning for people if the password goes there without TLS. `scheme`: the one to use instead.
std::optional<std::string> readable_password(const std::vector<Endpoint>& endpoints,
                                             const Access& access, const std::string& scheme);

/// What all kinds of Redis URLs have in common, taken out of the URL.
struct Settings {
  std::vector<Endpoint> endpoints;
  Access access;
  std::string prefix;
  std::vector<std::string> warnings{};

  /// Throws Error (invalid). What it does not know is left in the URL's query.
  static Settings take_from(Url& url, const std::string& default_port = "6379");
  /// Its names for Url::expect_all_taken, and these.
  static std::vector<std::string_view> options(std::vector<std::string_view> more = {});
};

/// 0 to 1000. Throws Error (invalid) that names the option.
int small_number(std::string_view text, const char* what);
/// "/3" names database 3. Throws Error (invalid).
int database_of(std::string_view path);

}  // namespace interlock::redis
