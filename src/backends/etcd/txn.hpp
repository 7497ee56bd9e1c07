// Transactions, written down.
#pragma once

#include <etcd.pb.h>

#include <functional>
#include <string>
#include <vector>

#include "backends/etcd/keys.hpp"

namespace interlock::etcd {

/// etcd takes up to 128 operations at once, but also transactions within transactions.
constexpr std::size_t kOpsAtOnce = 50;

using Ops = std::vector<wire::RequestOp>;

wire::RequestOp put(std::string key, std::string value, std::int64_t lease);
wire::RequestOp erase(std::string key);
wire::RequestOp read(Range range);
wire::RequestOp read(std::string key);

/// The key is there since this revision; 0: it is not there.
wire::Compare created(std::string key, std::int64_t revision);
/// It is there, and came after this revision.
wire::Compare created_after(std::string key, std::int64_t revision);
/// The key was last written at this revision.
wire::Compare written(std::string key, std::int64_t revision);
/// No key of the range was written after this revision. 0: the range is empty.
wire::Compare unchanged_since(Range range, std::int64_t revision);

/// Only if all of it holds. What is in `then` may be any number.
wire::RequestOp only_if(std::vector<wire::Compare> all, Ops then, Ops otherwise = {});
wire::TxnRequest transaction(std::vector<wire::Compare> all, Ops then, Ops otherwise = {});
/// Each for itself, in one step.
wire::TxnRequest together(std::vector<wire::TxnRequest> each);

// What came of it, in transactions within transactions as well.
void each_key(const wire::TxnResponse& response,
              const std::function<void(const wire::KeyValue&)>& visit);
/// For each `erase`, in order: whether there was something.
std::vector<bool> erased(const wire::TxnResponse& response);
/// All conditions held, in every transaction within it.
bool all_held(const wire::TxnResponse& response);

}  // namespace interlock::etcd
