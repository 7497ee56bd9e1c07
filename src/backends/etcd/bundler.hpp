// Many at once share the way: while a few transactions are under way, those that come wait, and then
// go together as one transaction of transactions. A lone caller never waits, and a crowd costs etcd
// one entry in its log instead of one each.
#pragma once

#include <deque>
#include <mutex>
#include <vector>

#include "backends/etcd/rpc.hpp"

namespace interlock::etcd {

/// Thread-safe.
class Bundler {
 public:
  explicit Bundler(Rpc& rpc) : rpc_(rpc) {}

  /// Like Rpc::txn. It writes keys of these resources only; no two of a bundle have one in common,
  /// so that each finds what it would find alone.
  void txn(std::vector<std::string> resources, wire::TxnRequest request, Call call,
           Then<wire::TxnResponse> then);

 private:
  struct One {
    std::vector<std::string> resources;
    wire::TxnRequest request;
    Call call;
    Then<wire::TxnResponse> then;
  };
  using Bundle = std::vector<One>;

  void send(One one);
  void send(Bundle bundle);
  /// `repeated`: together they were sent before, and nobody knows what came of it.
  void send_apart(Bundle bundle, bool repeated);
  /// Something came back: the next ones go.
  void next();

  Rpc& rpc_;
  std::mutex mutex_;
  std::deque<One> waiting_;
  int under_way_ = 0;
};

}  // namespace interlock::etcd
