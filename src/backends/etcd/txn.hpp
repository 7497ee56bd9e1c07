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
/// The first ones by name, as they were at a revision; 0: as they are.
wire::RequestOp read_first(Range range, std::int64_t most, std::int64_t revision);
/// Those that were created last, and how many there are in all.
wire::RequestOp read_last(Range range, std::int64_t most);

/// The key is there since this revision; 0: it is not there.
wire::Compare created(std::string key, std::int64_t revision);
/// It is there, and came after this revision.
wire::Compare created_after(std::string key, std::int64_t revision);
/// There are such keys, and all of them came after this revision.
wire::Compare created_after(Range range, std::int64_t revision);
/// All of them, if there are any, came by then.
wire::Compare none_created_since(Range range, std::int64_t revision);
/// The key was last written at this revision.
wire::Compare written(std::string key, std::int64_t revision);
/// No key of the range was written after this revision. 0: the range is empty.
wire::Compare unchanged_since(Range range, std::int64_t revision);
/// There are no such keys.
wire::Compare none(Range range);

/// Only if all of it holds. What is in `then` may be any number.
wire::RequestOp only_if(std::vector<wire::Compare> all, Ops then, Ops otherwise = {});
wire::TxnRequest transaction(std::vector<wire::Compare> all, Ops then, Ops otherwise = {});
/// The first of them that holds.
struct Case {
  std::vector<wire::Compare> all{};
  Ops then{};
};
wire::TxnRequest first_of(std::vector<Case> cases, Ops otherwise);
/// Which one it was; their number: none.
std::size_t which(const wire::TxnResponse& response, std::size_t cases);
/// Each for itself, in one step.
wire::TxnRequest together(std::vector<wire::TxnRequest> each);

/// There is an answer to each operation, of its kind. All that follows relies on that.
bool fits(const wire::TxnRequest& request, const wire::TxnResponse& response);

// What came of it, in transactions within transactions as well.
void each_range(const wire::TxnResponse& response,
                const std::function<void(const wire::RangeResponse&)>& visit);
void each_key(const wire::TxnResponse& response,
              const std::function<void(const wire::KeyValue&)>& visit);
/// For each `erase`, in order: whether there was something.
std::vector<bool> erased(const wire::TxnResponse& response);
/// All conditions held, in every transaction within it.
bool all_held(const wire::TxnResponse& response);

}  // namespace interlock::etcd
