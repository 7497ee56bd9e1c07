// POSTs, one after the other, to one address, over a connection that is kept.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "interlock/clock.hpp"

namespace interlock::observe {

class HttpPost {
 public:
  struct Result {
    long status = 0;    ///< 0: no answer
    std::string body;   ///< the beginning of it
    std::string error;  ///< why there is no answer
  };

  HttpPost(const std::string& url, const std::map<std::string, std::string>& headers);
  HttpPost(const HttpPost&) = delete;
  HttpPost& operator=(const HttpPost&) = delete;
  ~HttpPost();

  /// Blocks for `timeout` at most, or until `abandon` (asked about once a second) says so.
  Result send(const std::string& body, Duration timeout, const std::function<bool()>& abandon);

 private:
  class Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace interlock::observe
