// Where the members of an etcd cluster are, and how to get in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "interlock/backend.hpp"

namespace interlock::etcd {

struct Settings {
  std::vector<std::string> endpoints{};  ///< host:port
  std::string prefix{};
  std::string user{};
  std::string password{};
  Duration call_timeout = std::chrono::seconds(5);

  bool tls = false;
  std::string ca{};  ///< PEM; empty: the system's
  std::string certificate{};
  std::string key{};
  std::string server_name{};  ///< to verify; empty: the host
  std::vector<std::string> warnings{};

  /// Takes everything out of the URL. Throws Error (invalid) that names what is wrong, and never
  /// what is secret.
  static Settings take_from(Url url);
  /// "etcd://h1:2379,h2:2379", for errors.
  [[nodiscard]] std::string where() const;
  [[nodiscard]] std::string where(const std::string& endpoint) const;
  /// A warning for people if the password goes to another machine without TLS.
  [[nodiscard]] std::optional<std::string> readable_password() const;
};

}  // namespace interlock::etcd
