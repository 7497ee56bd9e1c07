// Calls to an etcd cluster, and the threads that make them.
//
// A caller that waits makes its call on its own thread, as a plain blocking client would: no thread
// is switched. If the answer is slow, the call goes on without the caller, who may have something
// else to listen to. All other calls, the streams and the housekeeping are one background thread's.
//
// A call that a member does not answer goes to the next one, while there is time. Everything that
// this store sends may be sent twice.
//
// Only rpc.cpp knows gRPC.
#pragma once

#include <etcd.pb.h>

#include <functional>
#include <memory>
#include <optional>

#include "backends/etcd/address.hpp"
#include "interlock/backend.hpp"

namespace interlock::etcd {

struct Failure {
  enum class Kind {
    unreachable,  ///< no answer; what was asked for may have been done all the same
    no_lease,     ///< the lease named in the request does not exist any more
    refused,
  };
  Kind kind = Kind::unreachable;
  Error error;
};

template <class Response>
struct Outcome {
  std::optional<Failure> failure{};
  Response response{};
  /// An earlier copy of the request was sent, and nobody knows what came of it.
  bool repeated = false;
};

/// Told what came of a call, and whether this thread still belongs to the one who waits.
template <class Response>
using Then = std::function<void(Outcome<Response>, Call)>;

/// One direction of a stream; the other one is a callback. Thread-safe.
template <class Request>
class Outbox {
 public:
  virtual ~Outbox() = default;
  /// Nothing happens if the stream has ended.
  virtual void send(Request request) = 0;
};

class Rpc {
 public:
  /// Throws Error (forked) if gRPC was in use before a fork that made this process.
  explicit Rpc(Settings settings);
  Rpc(const Rpc&) = delete;
  Rpc& operator=(const Rpc&) = delete;
  ~Rpc();

  /// Begins; `tick` is called on the background thread every quarter of a second.
  void start(std::function<void()> tick);
  /// Ends the background thread. No callback runs after that, and none will.
  void stop();

  void txn(wire::TxnRequest request, Call call, Then<wire::TxnResponse> then);
  void grant_lease(wire::LeaseGrantRequest request, Call call, Then<wire::LeaseGrantResponse> then);

  /// A stream lives until it breaks or the member is given up; `ended` is told, and may open the
  /// next one. Both callbacks run on the background thread.
  std::shared_ptr<Outbox<wire::WatchRequest>> watch(
      std::function<void(const wire::WatchResponse&)> message, std::function<void()> ended);
  std::shared_ptr<Outbox<wire::LeaseKeepAliveRequest>> keep_alive(
      std::function<void(const wire::LeaseKeepAliveResponse&)> message,
      std::function<void()> ended);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace interlock::etcd
