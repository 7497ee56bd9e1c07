// A member of etcd that is removed from its cluster, and a new one without data that is added in its place.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "torture/topologies/etcd_member.hpp"

namespace torture {

/// One at a time. The new member comes when the others let it: other faults may have to heal before.
class EtcdReplacement {
 public:
  explicit EtcdReplacement(EtcdMembers members);

  /// Throws std::exception if it can't be removed now, or if the last one is not replaced yet.
  void remove(EtcdMember& member);
  /// Comes back at once.
  void add_again();

 private:
  void run(const std::stop_token& stop);
  void try_to_add();
  [[nodiscard]] const EtcdMember& another() const;
  /// In the members' own list, by its address; empty: it is not there.
  [[nodiscard]] std::string id() const;

  EtcdMembers members_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  EtcdMember* removed_ = nullptr;
  bool wanted_ = false;
  /// A process ends with the thread that has started it, so this one is there for as long as the members are.
  std::jthread thread_;
};

}  // namespace torture
