// Names for the keys of a client's claims, used again and again: etcd remembers every key that there
// ever was until it is compacted, and looks through all of them when it reads a range.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "interlock/claim.hpp"

namespace interlock::etcd {

/// Thread-safe.
class Chairs {
 public:
  /// A name of the client's own, which its chairs have too.
  [[nodiscard]] const std::string& client() const noexcept { return client_; }
  /// The chair of this owner, for as long as it may have a key.
  std::string of(const Owner& owner);
  /// Another one: somebody else, who took over a claim of ours, still has that key.
  void change(const Owner& owner);
  void free(const Owner& owner);
  [[nodiscard]] bool has(const Owner& owner);

 private:
  std::size_t take();

  const std::string client_ = Owner::random().to_string().substr(0, 16);
  std::mutex mutex_;
  std::unordered_map<Owner, std::size_t> taken_;
  std::set<std::size_t> returned_;
  std::size_t next_ = 0;
};

}  // namespace interlock::etcd
