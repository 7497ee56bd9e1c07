#include "backends/etcd/bundler.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <unordered_set>

namespace interlock::etcd {

namespace {

constexpr int kAtOnce = 3;
// etcd takes 128 operations, counted along the longest way into the transactions within.
constexpr std::size_t kMost = 60;
constexpr int kLight = 10;

bool light(const wire::TxnRequest& request) {
  return request.compare_size() <= kLight && request.success_size() <= kLight &&
         request.failure_size() <= kLight;
}

}  // namespace

void Bundler::txn(std::vector<std::string> resources, wire::TxnRequest request, Call call,
                  Then<wire::TxnResponse> then) {
  if (!light(request)) return rpc_.txn(std::move(request), call, std::move(then));
  One one{std::move(resources), std::move(request), call, std::move(then)};
  {
    const std::lock_guard lock(mutex_);
    if (under_way_ == kAtOnce) {
      one.call.caller_waits = false;  // another thread brings the answer
      waiting_.push_back(std::move(one));
      return;
    }
    ++under_way_;
  }
  send(std::move(one));
}

void Bundler::send(One one) {
  rpc_.txn(std::move(one.request), one.call,
           [this, then = std::move(one.then)](Outcome<wire::TxnResponse> outcome, Call call) {
             next();
             then(std::move(outcome), call);
           });
}

void Bundler::next() {
  Bundle bundle;
  {
    const std::lock_guard lock(mutex_);
    std::unordered_set<std::string_view> taken;
    std::deque<One> left;
    for (auto& one : waiting_) {
      bool apart = true;
      for (const auto& resource : one.resources) apart = taken.insert(resource).second && apart;
      // Whoever comes later for the same resource stays behind.
      auto& to = apart && bundle.size() < kMost ? bundle.emplace_back() : left.emplace_back();
      to = std::move(one);
    }
    waiting_.swap(left);
    if (bundle.empty()) {
      --under_way_;
      return;
    }
  }
  if (bundle.size() == 1) return send(std::move(bundle.front()));
  send(std::move(bundle));
}

void Bundler::send(Bundle bundle) {
  wire::TxnRequest all;
  Call call{.deadline = TimePoint::min()};
  for (const auto& one : bundle) {
    *all.add_success()->mutable_request_txn() = one.request;
    call.deadline = std::max(call.deadline, one.call.deadline);
  }
  const auto kept = std::make_shared<Bundle>(std::move(bundle));
  rpc_.txn(std::move(all), call, [this, kept](Outcome<wire::TxnResponse> outcome, Call) {
    // etcd takes all or none of it: one that it won't take must not stop the others.
    if (outcome.failure && outcome.failure->kind != Failure::Kind::unreachable)
      return send_apart(std::move(*kept), outcome.repeated);
    next();
    for (std::size_t i = 0; i < kept->size(); ++i) {
      auto& one = (*kept)[i];
      Outcome<wire::TxnResponse> own{
          .failure = outcome.failure, .response = {}, .repeated = outcome.repeated};
      if (!own.failure) {
        own.response = std::move(
            *outcome.response.mutable_responses(static_cast<int>(i))->mutable_response_txn());
        *own.response.mutable_header() = outcome.response.header();
      }
      one.then(std::move(own), one.call);
    }
  });
}

void Bundler::send_apart(Bundle bundle, bool repeated) {
  next();
  for (auto& one : bundle) {
    rpc_.txn(std::move(one.request), one.call,
             [repeated, then = std::move(one.then)](Outcome<wire::TxnResponse> outcome, Call call) {
               outcome.repeated = outcome.repeated || repeated;
               then(std::move(outcome), call);
             });
  }
}

}  // namespace interlock::etcd
