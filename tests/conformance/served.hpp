// For stores that take servers: these are started once for all tests of a process, and every test has a
// prefix of its own.
#pragma once

#include "conformance/suite.hpp"

namespace interlock::conformance {

template <class Servers>
Servers& shared() {
  static Servers servers;
  return servers;
}

class ServedFixture : public StoreFixture {
 public:
  explicit ServedFixture(std::string url) : url_(std::move(url)) {
    url_ += (url_.find('?') == std::string::npos ? "?" : "&") + std::string("prefix=t") +
            Owner::random().brief() + ":";
  }
  std::unique_ptr<Backend> open() override { return stores::open(url_); }

 private:
  std::string url_;
};

}  // namespace interlock::conformance
