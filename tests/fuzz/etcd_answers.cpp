// What a member of etcd answers to a transaction, as it travels, and what becomes of the rows in it.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "backends/etcd/elements.hpp"
#include "backends/etcd/rows.hpp"
#include "fuzz.hpp"

namespace {

namespace etcd = interlock::etcd;

constexpr std::size_t kMostElements = 1000;

}  // namespace

void fuzz::run(std::string_view input) {
  const int size = static_cast<int>(input.size());
  for (const auto type : {etcd::Answered::txn, etcd::Answered::watch}) {
    google::protobuf::io::ArrayInputStream bytes(input.data(), size);
    if (!etcd::has_at_most(kMostElements, type, bytes)) return;
  }
  etcd::wire::WatchResponse message;
  (void)message.ParseFromArray(input.data(), size);
  etcd::wire::TxnResponse response;
  if (!response.ParseFromArray(input.data(), size)) return;
  const auto cases = etcd::first_of({{}, {}, {}}, {});
  if (etcd::fits(cases, response)) (void)etcd::which(response, 3);
  bool counts_more = false;
  etcd::each_range(response, [&](const etcd::wire::RangeResponse& range) {
    counts_more = counts_more || range.count() > range.kvs_size();
  });
  (void)etcd::erased(response);
  (void)etcd::all_held(response);

  const etcd::Keys keys("interlock/");
  const interlock::TimePoint now{std::chrono::hours(24 * 3650)};
  for (const bool all : {false, true}) {
    etcd::Sightings sightings;
    etcd::Rows rows(keys, sightings, now);
    interlock::Claim claim{.owner = {.high = 1, .low = 2},
                           .parts = {{.resource = "name"}},
                           .ttl = std::chrono::seconds(30),
                           .who = std::make_shared<const interlock::Who>()};
    if (all) {
      rows.pass_over_broken();
    } else {
      rows.only(claim);
    }
    const bool read = accepted([&] {
                        rows.add(response);
                        return true;
                      }).has_value();
    if (!read) continue;
    require(counts_more || rows.unread() == 0, "nobody is counted that is not there");
    (void)rows.clear_expired();
    (void)rows.occupied("chair", claim.owner);
    auto table = rows.table();
    (void)table.inspect({}, now);
    for (const auto mode :
         {interlock::Mode::exclusive, interlock::Mode::shared, interlock::Mode::slots}) {
      claim.parts.front().mode = mode;
      claim.parts.front().capacity = 2;
      auto asked = rows.table();
      std::vector<interlock::Wake> wakes;
      const auto answer = asked.acquire(claim, true, {}, now, wakes);
      if (answer.verdict == interlock::Verdict::queued) (void)rows.ahead(asked, claim);
      if (answer.verdict == interlock::Verdict::granted)
        (void)rows.change(asked, claim, "chair", 7);
    }
  }
}
