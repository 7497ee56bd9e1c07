// An authority of the tests' own, and the certificates of a server and a client.
#pragma once

#include "conformance/temporary_directory.hpp"
#include "servers/process.hpp"

namespace interlock::servers {

/// ca.crt, server.crt and .key, client.crt and .key, in a directory of their own.
class Certificates {
 public:
  static constexpr const char* kThisMachine = "DNS:localhost,IP:127.0.0.1";

  explicit Certificates(const std::string& names = kThisMachine) {
    const auto log = file("openssl.log");
    make({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
          "-nodes", "-days", "2", "-subj", "/CN=test CA", "-keyout", file("ca.key"), "-out",
          file("ca.crt")},
         log);
    for (const std::string who : {"server", "client"}) {
      make({"openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", who == "client" ? "/O=tests" : "/CN=server", "-addext",
            "subjectAltName=" + names, "-keyout", file(who + ".key"), "-out", file(who + ".csr")},
           log);
      make({"openssl", "x509", "-req", "-in", file(who + ".csr"), "-CA", file("ca.crt"), "-CAkey",
            file("ca.key"), "-CAcreateserial", "-days", "2", "-copy_extensions", "copy", "-out",
            file(who + ".crt")},
           log);
    }
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return (directory_.path() / name).string();
  }

 private:
  static void make(std::vector<std::string> words, const std::string& log) {
    if (run(std::move(words), log) != 0) throw std::runtime_error("openssl failed; see " + log);
  }

  TemporaryDirectory directory_;
};

}  // namespace interlock::servers
