#include "backends/etcd/rows.hpp"

#include <algorithm>

#include "backends/etcd/record.hpp"

namespace interlock::etcd {

void Rows::only(const Claim& claim) {
  all_ = false;
  for (const auto& part : claim.parts) rows_[part.resource];
}

void Rows::add(const wire::TxnResponse& response) {
  revision_ = response.header().revision();
  each_range(response, [this](const wire::RangeResponse& range) {
    unread_ += static_cast<std::uint32_t>(std::max<std::int64_t>(range.count(), range.kvs_size()) -
                                          range.kvs_size());
  });
  each_key(response, [this](const wire::KeyValue& kv) {
    last_written_ = std::max(last_written_, kv.mod_revision());
    const auto place = keys_.parse(kv.key());
    if (!place) return;
    auto row = rows_.find(place->resource);
    if (row == rows_.end()) {
      if (!all_) return;
      row = rows_.emplace(place->resource, Row{}).first;
    }
    Value value;
    try {
      value = decode(kv.value(), now_, kv.key());
    } catch (const Error& error) {
      if (pass_over_ && !(all_ && error.errc() == Errc::refused)) return;
      throw error.about(std::string(place->resource));
    }
    Entry entry{.key = kv.key(),
                .record = std::move(value.record),
                .letter = place->letter,
                .stronger = value.stronger,
                .created = kv.create_revision(),
                .written = kv.mod_revision()};
    auto& record = entry.record;
    if (record.fence == 0) record.fence = static_cast<std::uint64_t>(entry.created);
    // Whoever waits is there while its key is: its client takes it away, or the client's lease.
    record.expires = entry.seat() == Seat::waits
                         ? TimePoint::max()
                         : sightings_.see(kv.key(), entry.written, kv.value(), now_) + value.ttl;
    record.origin.home = static_cast<std::uint64_t>(entry.seat());
    row->second.push_back(std::move(entry));
  });
}

const Rows::Row& Rows::row(std::string_view resource) const {
  static const Row none;
  const auto it = rows_.find(resource);
  return it == rows_.end() ? none : it->second;
}

const Entry* Rows::find(std::string_view resource, Seat seat, const Owner& owner) const {
  for (const auto& entry : row(resource)) {
    if (entry.seat() == seat && entry.record.owner == owner) return &entry;
  }
  return nullptr;
}

const Entry* Rows::with_fence(std::string_view resource, std::uint64_t fence) const {
  for (const auto& entry : row(resource)) {
    if (entry.seat() == Seat::holds && entry.record.fence == fence) return &entry;
  }
  return nullptr;
}

std::int64_t Rows::last_written(std::string_view resource, Letter last_letter) const {
  std::int64_t last = 0;
  for (const auto& entry : row(resource)) {
    if (entry.letter <= last_letter) last = std::max(last, entry.written);
  }
  return last;
}

Ops Rows::clear_expired() const {
  Ops ops;
  for (const auto& [resource, row] : rows_) {
    for (const auto& entry : row) {
      if (entry.record.expires <= now_)
        ops.push_back(only_if({written(entry.key, entry.written)}, {erase(entry.key)}));
    }
  }
  return ops;
}

bool Rows::occupied(const std::string& chair, const Owner& owner) const {
  return std::any_of(rows_.begin(), rows_.end(), [&](const auto& item) {
    return std::any_of(item.second.begin(), item.second.end(), [&](const Entry& entry) {
      const auto place = keys_.parse(entry.key);
      return place && place->chair == chair && entry.record.owner != owner;
    });
  });
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
      return std::pair(a.seat() != Seat::holds, a.created) <
             std::pair(b.seat() != Seat::holds, b.created);
    });
    for (const auto& entry : row) {
      if (!one_kind(first, entry)) continue;
      if (entry.seat() == Seat::holds) {
        table.restore_holder(resource, entry.record);
        continue;
      }
      const auto number = static_cast<std::uint64_t>(entry.created);
      last_ticket = std::max(last_ticket, number);
      table.restore_waiter(resource, {entry.stronger, entry.record.priority, number}, entry.record);
    }
  }
  table.set_last_ticket(last_ticket);
  return table;
}

Rows::Change Rows::change(const LockTable& table, const Claim& claim, const std::string& chair,
                          std::int64_t lease) const {
  Change change;
  for (const auto& part : claim.parts) {
    const auto& holders = table.rows().at(part.resource).holders;
    const auto& record = *std::find_if(holders.begin(), holders.end(),
                                       [&](const Record& one) { return one.owner == claim.owner; });
    const auto* before = find(part.resource, Seat::holds, claim.owner);
    if (!claim.instead_of.empty() && before == nullptr) {
      if (const auto* old = find(part.resource, Seat::holds, claim.instead_of))
        change.ops.push_back(erase(old->key));
    }
    Value value{.record = record, .ttl = record.expires - now_};
    auto key = keys_.key(part.resource, Letter::holds, Keys::kExclusive);
    const auto& all = row(part.resource);
    // Taken by the same identity; or by the one that this takes over from, and a key can't be
    // deleted and written in one step.
    const bool taken =
        std::any_of(all.begin(), all.end(), [&](const Entry& entry) { return entry.key == key; });
    if (before != nullptr) {
      key = before->key;
      if (static_cast<std::uint64_t>(before->created) == record.fence)
        value.record.fence = 0;  // the key says so
    } else if (part.mode != Mode::exclusive || taken) {
      key = keys_.key(part.resource, holders_letter(part.mode), chair);
    }
    change.ops.push_back(put(key, encode(value, now_), lease));
    change.keys.push_back(std::move(key));
    change.created.push_back(before == nullptr ? 0 : before->created);
  }
  return change;
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
    const auto& entry =
        *find(part.resource, waits(record) ? Seat::waits : Seat::holds, record.owner);
    Ahead ahead;
    ahead.target.seen = revision_;
    ahead.target.range.begin = entry.key;
    ahead.target.created = entry.created;
    if (waits(record)) {
      ahead.key = Wait::Ahead{.key = entry.key, .created = entry.created};
      if (part.mode != Mode::slots && !same_identity(record)) {
        const auto chair =
            record.mode == Mode::exclusive ? Keys::kExclusive : keys_.parse(entry.key)->chair;
        ahead.key->next = keys_.key(part.resource, holders_letter(record.mode), chair);
      }
      return ahead;
    }
    ahead.target.writes = true;  // a holder that renews is seen to
    ahead.expires = record.expires;
    if (part.mode == Mode::slots) {  // whichever of them goes
      ahead.target.range = keys_.holders(part.resource);
      ahead.target.created = 0;
      for (const auto& other : all) ahead.expires = std::min(ahead.expires, other.expires);
      return ahead;
    }
    ahead.key = Wait::Ahead{.key = entry.key,
                            .created = entry.created,
                            .written = entry.written,
                            .expires = record.expires};
    return ahead;
  }
  return std::nullopt;
}

}  // namespace interlock::etcd
