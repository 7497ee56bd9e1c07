// A shard's file: read whole, replaced whole.
#pragma once

#include <string>

#include "backends/file/directory.hpp"
#include "backends/file/shard.hpp"

namespace interlock::file {

/// Used under the shard's lock only.
///
/// The new content goes into a spare file, and one rename exchanges the two: whoever is killed on
/// the way leaves the old content or the new one. The spare is kept, and both always own the disk
/// blocks that the present content needs: so what gets no larger (a renewal, a release) can be
/// written when the disk is full.
class ShardFile {
 public:
  /// Reads it. Throws Error (corrupt, refused). A missing or empty file is an empty shard.
  ShardFile(const Directory& directory, ShardId id);

  [[nodiscard]] ShardId id() const noexcept { return id_; }
  [[nodiscard]] const std::string& content() const noexcept { return content_; }

  /// Writes the spare. Nothing has changed until `replace`. Throws Error (refused): a full disk, or more than kMostBytes.
  void prepare(const std::string& content);
  /// Puts the spare in the file's place.
  void replace();
  /// Undoes a `replace`, as well as that is possible.
  void undo() noexcept;

  /// The store, as a URL.
  [[nodiscard]] const std::string& where() const noexcept { return directory_.where(); }
  /// The error about this file, which names it and what to do.
  [[nodiscard]] Error corrupt(const std::string& why) const;
  /// What read_shard has thrown about it.
  [[nodiscard]] Error unreadable(const Error& why) const;

 private:
  void reserve(std::size_t size) const;

  const Directory& directory_;
  ShardId id_;
  std::string content_;
  std::size_t allocated_ = 0;
  bool exists_ = false;
  bool exchanged_ = false;
};

/// How much one call may read, all of its files together.
class ReadLimit {
 public:
  /// Throws Error (refused) if that is too much.
  void add(const ShardFile& file);

 private:
  static constexpr std::size_t kMost = std::size_t{64} << 20U;
  std::size_t read_ = 0;
};

/// Those that were ever used, sorted.
std::vector<ShardId> existing_shards(const Directory& directory);

}  // namespace interlock::file
