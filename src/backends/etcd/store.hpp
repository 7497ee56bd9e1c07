// The etcd store: a claim becomes a transaction. README.md says how and why.
#pragma once

#include <atomic>
#include <limits>
#include <memory>

#include "backends/etcd/book.hpp"
#include "backends/etcd/bundler.hpp"
#include "backends/etcd/chairs.hpp"
#include "backends/etcd/lane.hpp"
#include "backends/etcd/leases.hpp"
#include "backends/etcd/rows.hpp"
#include "backends/etcd/watcher.hpp"

namespace interlock::etcd {

class Store final : public Backend {
 public:
  explicit Store(Settings settings);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() override;

  [[nodiscard]] const Traits& traits() const noexcept override { return traits_; }
  void acquire(const Claim& claim, bool queue, Call call, Reply reply) override;
  void renew(const Claim& claim, Call call, Reply reply) override;
  void release(const Claim& claim, Call call, Reply reply) override;
  void inspect(const Query& query, Call call, Report report) override;
  void on_wake(WakeSink sink) override { sink_ = std::move(sink); }

 private:
  static constexpr auto kNothingSent = std::numeric_limits<std::int64_t>::max();
  /// A claim that is asked for, renewed or given back, and how far that has come.
  struct Ask {
    Claim claim;
    bool queue = false;
    Reply reply;
    LeaseId lease = 0;
    LeaseId waiters_lease = 0;
    LeaseId recalls_lease = 0;
    int leases_lost = 0;
    bool acquires = false;
    bool in_lane = false;
    bool tidies = false;     ///< nobody asked for it: what was written since it looked stays
    bool in_doubt = false;   ///< something that was sent for it may be done yet
    bool cut_short = false;  ///< it had less time than etcd has to answer
    Book::CallOf call{};     ///< if it acquires, or tidies up
    /// When it last sent something that makes keys, this was the last recall known. Or never.
    std::int64_t sent_under = kNothingSent;
  };
  using AskPtr = std::shared_ptr<Ask>;
  using Txn = Outcome<wire::TxnResponse>;
  using Answered = std::function<void(const wire::TxnResponse&, Call)>;

  [[nodiscard]] AskPtr make_ask(const Claim& claim, bool queue, Call& call, Reply reply) const;

  // store_acquire.cpp
  void begin(const AskPtr& ask, Call call);
  void leave_lane(Ask& ask, Lane::Left how);
  /// Nobody waits for this call any more.
  void asked_again(const AskPtr& ask);
  void take_or_queue(const AskPtr& ask, Call call);
  void still_in_line(const AskPtr& ask, const Wait& wait, Call call);
  [[nodiscard]] std::vector<wire::Compare> same(const Wait& wait) const;
  /// Something has changed for it, or it can't be told: takes it, if it is its turn.
  void my_turn(const AskPtr& ask, const Wait& wait, Call call);
  void same_place(const AskPtr& ask, const Wait& wait, const wire::TxnResponse& response);
  /// The one ahead has been granted, and is in the way as it was.
  void now_behind_holder(const AskPtr& ask, Wait wait, const wire::TxnResponse& response);
  void look(const AskPtr& ask, Call call);
  /// For a request that makes keys. If an earlier copy of it may be on its way, what came of this
  /// one is not what will be: the copies are recalled, and it is decided anew.
  [[nodiscard]] Then<wire::TxnResponse> once(const AskPtr& ask, Answered then);
  void recall_and_decide(const AskPtr& ask, Call call);
  /// `whole`: if not, only the end of the line was read, and the rest was counted.
  void decide(const AskPtr& ask, const wire::TxnResponse& response, Call call, bool whole = true);
  void out_of_time(const AskPtr& ask, Call call);
  void commit(const AskPtr& ask, const Rows& rows, const LockTable& table, const Answer& answer,
              Call call);
  void enqueue(const AskPtr& ask, Call call);
  void leave_line(const AskPtr& ask, const std::vector<const Entry*>& places, Call call,
                  std::function<void(Call)> then);
  void queued(const AskPtr& ask, const Rows& rows, const LockTable& table, Answer answer);
  // What is known of a claim by letters alone, without reading the rows. README.md says why.
  /// It waits in order of arrival, and for nobody but those in its way.
  [[nodiscard]] static bool plain(const Claim& claim);
  [[nodiscard]] static bool shares_alike(const Claim& claim, const Part& part);
  /// Nobody is there who would be in the way, and nothing of its own.
  [[nodiscard]] std::vector<wire::Compare> free_for(const Ask& ask);
  /// No holder is in the way, and its seat is free.
  [[nodiscard]] std::vector<wire::Compare> no_holder(const Ask& ask);
  /// It is where it was, and nobody ahead is in the way. Of those behind whom it would wait, all
  /// came later; or (`nobody`, only if it shares) there is none.
  [[nodiscard]] std::vector<wire::Compare> first_in_line(const Claim& claim, const Wait& wait,
                                                         bool nobody) const;
  /// Somebody is ahead of a claim that comes now, and it is enough to know who is the last one.
  [[nodiscard]] std::vector<wire::Compare> behind_somebody(const Ask& ask);
  [[nodiscard]] Ops end_of_line(const Claim& claim) const;
  /// That is so for this claim.
  [[nodiscard]] bool brief(const Ask& ask) const;
  /// One key for each part, as long as nobody else is there.
  [[nodiscard]] std::vector<std::string> keys_of(const Claim& claim, Seat seat);
  [[nodiscard]] Ops seats(const Ask& ask, Seat seat, LeaseId lease, TimePoint now);
  [[nodiscard]] std::vector<wire::Compare> not_in_line(const Ask& ask);
  /// Before every transaction that makes keys: if not, it was asked for again meanwhile, and that call
  /// decides. Whatever this one sends after that, is recalled.
  [[nodiscard]] bool may_make_keys(Ask& ask) const;
  /// For every transaction that makes keys.
  [[nodiscard]] wire::Compare not_recalled(const Ask& ask) const;
  [[nodiscard]] Hold make_hold(const Ask& ask);
  /// Of each part that is shared, one key of another who shares it.
  [[nodiscard]] Ops one_reader_each(const Claim& claim) const;
  /// It was granted beside those that `one_reader_each` read. If one of them is of another format, it is taken back.
  void share(const AskPtr& ask, const wire::TxnResponse& response, Call call);

  // store.cpp
  void give_back(const AskPtr& ask, Call call);
  void renew_hold(const AskPtr& ask, const Hold& hold, Call call);
  void learn_and_renew(const AskPtr& ask, Call call);
  void release_wait(const AskPtr& ask, const Wait& wait, Call call);
  void find_and_release(const AskPtr& ask, Call call);
  void release_found(const AskPtr& ask, const wire::TxnResponse& response, Call call);
  /// What it sent before makes no keys any more; and this is what is there then.
  void recall(const AskPtr& ask, Call call, Answered then);
  /// `hold`: what is known of it so far; what is 0 there gets the transaction's revision.
  void granted(const AskPtr& ask, const wire::TxnResponse& response, Hold hold, Duration ttl);
  [[nodiscard]] static bool wide(const Claim& claim) { return claim.parts.size() > kOpsAtOnce; }
  [[nodiscard]] Ops reads(const Claim& claim) const;
  [[nodiscard]] Rows read_rows(const Claim& claim, const wire::TxnResponse& response,
                               bool pass_over_broken = false);
  /// Sends, and hands on what came of it unless it failed: then the ask has its answer.
  void send(const AskPtr& ask, wire::TxnRequest request, Call call, Answered then);
  /// The same, together with others.
  void send_bundled(const AskPtr& ask, wire::TxnRequest request, Call call,
                    Then<wire::TxnResponse> then);
  [[nodiscard]] Then<wire::TxnResponse> handle(const AskPtr& ask,
                                               std::function<void(const Txn&, Call)> then);
  void failed(const AskPtr& ask, const Failure& failure, Call call);
  void forget(const Ask& ask);
  void check(const Owner& owner, const Target& target);
  /// Nobody asks for it any more.
  void tidy(const Book::Due::Tidy& what, bool in_doubt);
  void tick();

  Traits traits_;
  const Settings settings_;
  const Keys keys_;
  WakeSink sink_;
  Sightings sightings_;
  Book book_;
  Chairs chairs_;
  const std::string recall_key_ = keys_.recall(chairs_.client());
  std::atomic<std::int64_t> recalled_ = 0;  ///< the revision of the last recall, as far as known
  Lane lane_{[this](const Owner& owner) { sink_(owner); }};
  Rpc rpc_;
  Bundler bundler_{rpc_};
  Leases leases_;
  Watcher watcher_;
};

}  // namespace interlock::etcd
