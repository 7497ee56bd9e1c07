// The store of a command that only looks: it makes no directory.
#pragma once

#include <memory>
#include <optional>

#include "options.hpp"

namespace cli {

/// Throws Error (refused) for a file store that was named and does not exist. The default place may be missing.
void check_exists(const Common& common);

/// True for a file store whose directory the first lock will make. Throws Error if that would fail.
bool not_made_yet(const Common& common);

/// Empty while the default place does not exist, since nothing was ever locked there. For one thread.
class StoreView {
 public:
  /// Throws Error as check_exists and open_store do. Keeps a reference.
  explicit StoreView(const Common& common, std::shared_ptr<interlock::Observer> observer = {});

  [[nodiscard]] interlock::Snapshot inspect(const interlock::Query& query = {});
  /// Null while the default place does not exist.
  [[nodiscard]] const interlock::Client* client();
  /// They never change, so any thread may read them.
  [[nodiscard]] const interlock::Traits& traits() const { return traits_; }

 private:
  const Common& common_;
  std::shared_ptr<interlock::Observer> observer_;
  std::optional<interlock::Client> client_;
  interlock::Traits traits_;
};

}  // namespace cli
