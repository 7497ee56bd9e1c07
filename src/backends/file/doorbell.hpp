// How one client wakes another: a FIFO for each client, named after its home.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "backends/file/directory.hpp"
#include "interlock/claim.hpp"

namespace interlock::file {

/// Whoever frees something writes the owner that is next to the FIFO of that owner's client. So it
/// wakes the one process concerned and tells it whom; a watch on the file would wake all of them.
/// A holder that was evicted is told in the same way. The FIFO is made when the client first holds
/// or waits, and removed with the client. Thread-safe.
class Doorbell {
 public:
  explicit Doorbell(const Directory& directory);
  ~Doorbell();
  Doorbell(const Doorbell&) = delete;
  Doorbell& operator=(const Doorbell&) = delete;

  /// Random, never 0: where others ring for us.
  [[nodiscard]] std::uint64_t home() const noexcept { return home_; }

  /// Makes the FIFO if it is not there yet, and then sets `fresh`. False: it can't be made.
  bool hang(std::atomic<bool>& fresh);
  /// To poll; -1 while there is none.
  [[nodiscard]] int fd() const;

  struct Rings {
    std::vector<Owner> owners;
    bool missed = false;  ///< so many came that some may have been lost
  };
  /// Whom others rang for since the last call. Called by one thread.
  Rings listen();

  /// Rings for these owners at another client's door. If nobody is there any more, fine.
  static void ring(const Directory& directory, std::uint64_t home, std::span<const Owner> owners);

  /// Removes the doorbells of clients that were killed.
  static void remove_leftovers(const Directory& directory);

 private:
  const Directory& directory_;
  std::uint64_t home_;
  mutable std::mutex mutex_;
  std::vector<FileDescriptor> fifos_;  // the last one counts; one more if the directory was removed
  unsigned generation_ = 0;
  std::string rest_;  // of a line
};

}  // namespace interlock::file
