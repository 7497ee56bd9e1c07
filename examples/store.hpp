// Where an example keeps its locks: $INTERLOCK_URL, or a directory of its own that goes when it does.
#pragma once

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "expect.hpp"

class Store {
 public:
  Store() {
    if (const char* url = std::getenv("INTERLOCK_URL")) {
      url_ = url;
      return;
    }
    auto name = (std::filesystem::temp_directory_path() / "interlock-example-XXXXXX").string();
    expect(mkdtemp(name.data()) != nullptr, "a temporary directory");
    directory_ = name;
    url_ = "file://" + (directory_ / "locks").string();
  }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::filesystem::path directory_;
};
