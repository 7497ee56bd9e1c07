// The name server that workers ask for the hosts in their URL.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "conformance/temporary_directory.hpp"
#include "torture/topologies/proxies.hpp"

namespace torture {

class NameServer {
 public:
  /// A name of this machine, which is in need of a name server as all names are.
  static std::string name_of(const Passage& passage) {
    return "localhost:" + std::to_string(passage.port());
  }

  /// Of the workers.
  [[nodiscard]] std::vector<std::string> environment() const {
    return {"TORTURE_NAMES=" + file_.string()};
  }
  /// It hears every question and answers none, and connections are cut, so that workers have to ask.
  [[nodiscard]] Fault silent(const Passages& passages, bool voids = false) const {
    return of_all(
        {.name = "a silent name server", .voids = voids},
        [this, passages](Random&) {
          const std::ofstream there(file_);
          for (auto* passage : passages) passage->cut();
        },
        [this] { std::filesystem::remove(file_); });
  }

 private:
  interlock::TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_.path() / "silent";
};

}  // namespace torture
