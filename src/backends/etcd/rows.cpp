#include "backends/etcd/rows.hpp"

#include <algorithm>

#include "backends/etcd/record.hpp"

namespace interlock::etcd {

void Rows::only(const Claim& claim) {
  all_ = false;
  for (const auto& part : claim.parts) rows_[part.resource];
}

void Rows::add(const wire::TxnResponse& response, bool bundled) {
  revision_ = response.header().revision() - (bundled ? 1 : 0);
  each_key(response, [this](const wire::KeyValue& kv) {
    last_written_ = std::max(last_written_, kv.mod_revision());
    const auto place = keys_.parse(kv.key());
    if (!place) return;
    auto row = rows_.find(place->resource);
    if (row == rows_.end()) {
      if (!all_) return;
      row = rows_.emplace(place->resource, Row{}).first;
    }
    auto value = decode(kv.value(), now_, kv.key());
    Entry entry{.record = std::move(value.record),
                .seat = place->seat,
                .stronger = value.stronger,
                .turn = value.turn,
                .created = kv.create_revision(),
                .written = kv.mod_revision()};
    auto& record = entry.record;
    record.owner = place->owner;
    if (record.fence == 0) record.fence = static_cast<std::uint64_t>(entry.created);
    // Whoever waits is there while its key is: its client takes it away, or the client's lease.
    record.expires = entry.seat == Seat::waits
                         ? TimePoint::max()
                         : sightings_.see(kv.key(), entry.written, now_) + value.ttl;
    record.origin.home = static_cast<std::uint64_t>(entry.seat);
    record.origin.born = static_cast<std::uint64_t>(entry.created);
    record.origin.realm = static_cast<std::uint64_t>(entry.written);
    row->second.push_back(std::move(entry));
  });
}

const Entry* Rows::find(std::string_view resource, Seat seat, const Owner& owner) const {
  const auto row = rows_.find(resource);
  if (row == rows_.end()) return nullptr;
  const auto it = std::find_if(row->second.begin(), row->second.end(), [&](const Entry& entry) {
    return entry.seat == seat && entry.record.owner == owner;
  });
  return it == row->second.end() ? nullptr : &*it;
}

std::int64_t Rows::last_written(std::string_view resource) const {
  std::int64_t last = 0;
  const auto row = rows_.find(resource);
  if (row == rows_.end()) return last;
  for (const auto& entry : row->second) {
    if (entry.seat == Seat::holds) last = std::max(last, entry.written);
  }
  return last;
}

bool Rows::one_kind(const Entry& first, const Entry& other) {
  const bool slots = first.record.mode == Mode::slots;
  return slots == (other.record.mode == Mode::slots) &&
         (!slots || first.record.capacity == other.record.capacity);
}

LockTable Rows::table() const {
  LockTable table({.next_fence = [](const std::string&) { return std::uint64_t{0}; }});
  std::uint64_t last_ticket = 0;
  for (const auto& [resource, row] : rows_) {
    if (row.empty()) continue;
    // Somebody who asks for another kind stands in line until it knows that it can't. What counts
    // is who was here first.
    const auto& first = *std::min_element(row.begin(), row.end(), [](const auto& a, const auto& b) {
      return std::pair(a.seat != Seat::holds, a.created) <
             std::pair(b.seat != Seat::holds, b.created);
    });
    for (const auto& entry : row) {
      if (!one_kind(first, entry)) continue;
      if (entry.seat == Seat::holds) {
        table.restore_holder(resource, entry.record);
        continue;
      }
      const auto number = (static_cast<std::uint64_t>(entry.created) << 16U) | entry.turn;
      last_ticket = std::max(last_ticket, number);
      table.restore_waiter(resource, {entry.stronger, entry.record.priority, number}, entry.record);
    }
  }
  table.set_last_ticket(last_ticket);
  return table;
}

Ops Rows::changes(const LockTable& table, std::int64_t lease) const {
  Ops ops;
  for (const auto& [resource, row] : rows_) {
    const auto after = table.rows().find(resource);
    const auto still_there = [&](const Entry& entry) {
      return after != table.rows().end() &&
             std::any_of(after->second.holders.begin(), after->second.holders.end(),
                         [&](const Record& record) { return record.owner == entry.record.owner; });
    };
    for (const auto& entry : row) {
      if (entry.seat == Seat::holds && !still_there(entry))
        ops.push_back(erase(keys_.key(resource, Seat::holds, entry.record.owner)));
    }
    if (after == table.rows().end()) continue;
    for (const auto& record : after->second.holders) {
      const auto* before = find(resource, Seat::holds, record.owner);
      if (before != nullptr && before->record.expires == record.expires &&
          before->record.who == record.who)
        continue;
      Value value{.record = record, .ttl = record.expires - now_};
      if (before != nullptr && static_cast<std::uint64_t>(before->created) == record.fence)
        value.record.fence = 0;  // the key says so
      ops.push_back(
          put(keys_.key(resource, Seat::holds, record.owner), encode(value, now_), lease));
    }
  }
  return ops;
}

std::optional<Rows::Ahead> Rows::ahead(const LockTable& table, const Claim& claim) const {
  const auto waits = [](const Record& record) {
    return record.origin.home == static_cast<std::uint64_t>(Seat::waits);
  };
  const auto same_identity = [&](const Record& record) {
    return !claim.who->identity.empty() && record.who->identity == claim.who->identity;
  };
  for (const auto& part : claim.parts) {
    Claim one = claim;
    one.parts = {part};
    auto all = table.in_the_way(one, static_cast<std::size_t>(-1));
    if (part.mode != Mode::slots) {
      // Those who wait for this very identity are not in its way.
      const bool inside = std::any_of(all.begin(), all.end(), [&](const Record& record) {
        return !waits(record) && same_identity(record);
      });
      std::erase_if(all, [&](const Record& record) {
        return waits(record) ? inside : same_identity(record);
      });
    }
    if (all.empty()) continue;
    // In the queue, whoever is next ahead: those before it wait for each other. Else a holder.
    const auto& record = all.back();
    const auto key =
        keys_.key(part.resource, waits(record) ? Seat::waits : Seat::holds, record.owner);
    const auto created = static_cast<std::int64_t>(record.origin.born);
    Ahead ahead;
    ahead.target.seen = revision_;
    if (waits(record)) {
      ahead.target.range.begin = key;
      ahead.key = Wait::Ahead{.key = key, .created = created};
      if (part.mode != Mode::slots && !same_identity(record))
        ahead.key->next = keys_.key(part.resource, Seat::holds, record.owner);
      return ahead;
    }
    ahead.target.writes = true;  // a holder that renews is seen to
    ahead.expires = record.expires;
    if (part.mode == Mode::slots) {  // whichever of them goes
      ahead.target.range = keys_.holders(part.resource);
      for (const auto& other : all) ahead.expires = std::min(ahead.expires, other.expires);
      return ahead;
    }
    ahead.target.range.begin = key;
    ahead.key = Wait::Ahead{.key = key,
                            .created = created,
                            .written = static_cast<std::int64_t>(record.origin.realm),
                            .expires = record.expires};
    return ahead;
  }
  return std::nullopt;
}

}  // namespace interlock::etcd
