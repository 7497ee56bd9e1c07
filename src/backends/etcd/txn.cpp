#include "backends/etcd/txn.hpp"

#include <algorithm>

namespace interlock::etcd {

namespace {

using List = google::protobuf::RepeatedPtrField<wire::RequestOp>;

void fill(List& list, Ops ops) {
  if (ops.size() <= kOpsAtOnce) {
    for (auto& op : ops) *list.Add() = std::move(op);
    return;
  }
  for (std::size_t i = 0; i < ops.size(); i += kOpsAtOnce) {
    auto& inner = *list.Add()->mutable_request_txn();
    for (std::size_t at = i; at < std::min(i + kOpsAtOnce, ops.size()); ++at)
      *inner.add_success() = std::move(ops[at]);
  }
}

template <class Visit>
void each_response(const wire::TxnResponse& response, const Visit& visit) {
  for (const auto& one : response.responses()) {
    visit(one);
    if (one.has_response_txn()) each_response(one.response_txn(), visit);
  }
}

}  // namespace

wire::RequestOp put(std::string key, std::string value, std::int64_t lease) {
  wire::RequestOp op;
  auto& request = *op.mutable_request_put();
  request.set_key(std::move(key));
  request.set_value(std::move(value));
  request.set_lease(lease);
  return op;
}

wire::RequestOp erase(std::string key) {
  wire::RequestOp op;
  op.mutable_request_delete_range()->set_key(std::move(key));
  return op;
}

wire::RequestOp read(Range range) {
  wire::RequestOp op;
  op.mutable_request_range()->set_key(std::move(range.begin));
  op.mutable_request_range()->set_range_end(std::move(range.end));
  return op;
}

wire::RequestOp read(std::string key) {
  wire::RequestOp op;
  op.mutable_request_range()->set_key(std::move(key));
  return op;
}

wire::RequestOp read_first(Range range, std::int64_t most, std::int64_t revision) {
  auto op = read(std::move(range));
  op.mutable_request_range()->set_limit(most);
  op.mutable_request_range()->set_revision(revision);
  return op;
}

wire::RequestOp read_last(Range range, std::int64_t most) {
  auto op = read(std::move(range));
  auto& request = *op.mutable_request_range();
  request.set_limit(most);
  request.set_sort_order(wire::RangeRequest::DESCEND);
  request.set_sort_target(wire::RangeRequest::BY_CREATE);
  return op;
}

wire::Compare created(std::string key, std::int64_t revision) {
  wire::Compare compare;
  compare.set_target(wire::Compare::CREATE);
  compare.set_key(std::move(key));
  compare.set_create_revision(revision);
  return compare;
}

wire::Compare created_after(std::string key, std::int64_t revision) {
  auto compare = created(std::move(key), revision);
  compare.set_result(wire::Compare::GREATER);
  return compare;
}

// Of an empty range, etcd compares a key that was created at 0.
wire::Compare created_after(Range range, std::int64_t revision) {
  auto compare = created_after(std::move(range.begin), revision);
  compare.set_range_end(std::move(range.end));
  return compare;
}

wire::Compare none_created_since(Range range, std::int64_t revision) {
  auto compare = created(std::move(range.begin), revision + 1);
  compare.set_result(wire::Compare::LESS);
  compare.set_range_end(std::move(range.end));
  return compare;
}

wire::Compare written(std::string key, std::int64_t revision) {
  wire::Compare compare;
  compare.set_target(wire::Compare::MOD);
  compare.set_key(std::move(key));
  compare.set_mod_revision(revision);
  return compare;
}

wire::Compare unchanged_since(Range range, std::int64_t revision) {
  wire::Compare compare;
  compare.set_result(wire::Compare::LESS);
  compare.set_target(wire::Compare::MOD);
  compare.set_key(std::move(range.begin));
  compare.set_range_end(std::move(range.end));
  compare.set_mod_revision(revision + 1);
  return compare;
}

wire::Compare none(Range range) { return unchanged_since(std::move(range), 0); }

wire::RequestOp only_if(std::vector<wire::Compare> all, Ops then, Ops otherwise) {
  wire::RequestOp op;
  *op.mutable_request_txn() = transaction(std::move(all), std::move(then), std::move(otherwise));
  return op;
}

wire::TxnRequest transaction(std::vector<wire::Compare> all, Ops then, Ops otherwise) {
  wire::TxnRequest request;
  for (auto& one : all) *request.add_compare() = std::move(one);
  fill(*request.mutable_success(), std::move(then));
  fill(*request.mutable_failure(), std::move(otherwise));
  return request;
}

wire::TxnRequest first_of(std::vector<Case> cases, Ops otherwise) {
  for (auto i = cases.size(); i-- > 0;) {
    auto one = only_if(std::move(cases[i].all), std::move(cases[i].then), std::move(otherwise));
    otherwise.clear();
    otherwise.push_back(std::move(one));
  }
  return cases.empty() ? transaction({}, std::move(otherwise))
                       : std::move(*otherwise.front().mutable_request_txn());
}

namespace {

bool all_fit(const google::protobuf::RepeatedPtrField<wire::RequestOp>& asked,
             const google::protobuf::RepeatedPtrField<wire::ResponseOp>& answered) {
  return std::equal(asked.begin(), asked.end(), answered.begin(), answered.end(),
                    [](const wire::RequestOp& request, const wire::ResponseOp& response) {
                      if (request.has_request_txn()) {
                        return response.has_response_txn() &&
                               fits(request.request_txn(), response.response_txn());
                      }
                      return request.has_request_range() == response.has_response_range() &&
                             request.has_request_delete_range() ==
                                 response.has_response_delete_range();
                    });
}

}  // namespace

bool fits(const wire::TxnRequest& request, const wire::TxnResponse& response) {
  return all_fit(response.succeeded() ? request.success() : request.failure(),
                 response.responses());
}

std::size_t which(const wire::TxnResponse& response, std::size_t cases) {
  const auto* inner = &response;
  for (std::size_t at = 0; at < cases; ++at) {
    if (inner->succeeded()) return at;
    if (at + 1 < cases) inner = &inner->responses(0).response_txn();
  }
  return cases;
}

wire::TxnRequest together(std::vector<wire::TxnRequest> each) {
  if (each.size() == 1) return std::move(each.front());
  Ops ops(each.size());
  for (std::size_t i = 0; i < each.size(); ++i) *ops[i].mutable_request_txn() = std::move(each[i]);
  return transaction({}, std::move(ops));
}

void each_range(const wire::TxnResponse& response,
                const std::function<void(const wire::RangeResponse&)>& visit) {
  each_response(response, [&](const wire::ResponseOp& one) {
    if (one.has_response_range()) visit(one.response_range());
  });
}

void each_key(const wire::TxnResponse& response,
              const std::function<void(const wire::KeyValue&)>& visit) {
  each_range(response, [&](const wire::RangeResponse& range) {
    for (const auto& kv : range.kvs()) visit(kv);
  });
}

std::vector<bool> erased(const wire::TxnResponse& response) {
  std::vector<bool> found;
  each_response(response, [&](const wire::ResponseOp& one) {
    if (one.has_response_delete_range()) found.push_back(one.response_delete_range().deleted() > 0);
  });
  return found;
}

bool all_held(const wire::TxnResponse& response) {
  bool held = response.succeeded();
  each_response(response, [&](const wire::ResponseOp& one) {
    held = held && (!one.has_response_txn() || one.response_txn().succeeded());
  });
  return held;
}

}  // namespace interlock::etcd
