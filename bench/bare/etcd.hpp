// Two puts: what any lock on etcd is measured against.
#pragma once

#include <etcd.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

/// Blocking puts, as a generated stub makes them. Thread-safe.
class BareEtcd {
 public:
  explicit BareEtcd(const std::string& address)
      : channel_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {}

  void put(const std::string& key) {
    using grpc::internal::RpcMethod;
    interlock::etcd::wire::PutRequest request;
    request.set_key(key);
    request.set_value(std::string(100, 'x'));
    interlock::etcd::wire::TxnResponse response;  // of which only the header is there
    grpc::ClientContext context;
    const auto status = grpc::internal::BlockingUnaryCall(
        channel_.get(), RpcMethod("/etcdserverpb.KV/Put", RpcMethod::NORMAL_RPC), &context, request,
        &response);
    if (!status.ok()) throw std::runtime_error("gRPC: " + status.error_message());
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace bench
