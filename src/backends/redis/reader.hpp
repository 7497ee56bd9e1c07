// Makes replies of what a server sends. A reply that is larger than any that a lock needs ends the
// connection, so that a hostile server can't fill the memory.
#pragma once

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "backends/redis/protocol.hpp"

namespace interlock::redis {

/// The replies of one connection. Not thread-safe.
class Reader {
 public:
  /// Limits of one reply, with all that it contains. The description of a lock with 20,000 waiters
  /// stays below both.
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20U;
  static constexpr std::size_t kMostElements = std::size_t{1} << 17U;

  Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() = default;

  void feed(std::string_view bytes);
  /// The next reply, if it is complete. Throws Error (unreachable) if it breaks the protocol or a
  /// limit; the reader is of no use any more then.
  std::optional<Response> next();

 private:
  struct Free {
    void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
  };
  template <class Count>
  static void* create_array(const redisReadTask* task, Count count);

  std::unique_ptr<redisReader, Free> reader_;
  const redisReplyObjectFunctions defaults_;
  redisReplyObjectFunctions functions_;
  std::size_t elements_ = 0;  ///< of the incomplete reply
  std::size_t bytes_ = 0;     ///< of the incomplete reply
};

}  // namespace interlock::redis
