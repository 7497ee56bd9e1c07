// Names of resources, as keys of stores and back. The first line is the prefix, the rest the name.
#include <algorithm>

#include "backends/etcd/keys.hpp"
#include "backends/file/shard.hpp"
#include "backends/redis/keys.hpp"
#include "core/text.hpp"
#include "fuzz.hpp"
#include "interlock/claim.hpp"

namespace {

using fuzz::require;

void as_text(std::string_view name) {
  const auto encoded = interlock::percent_encode(name);
  require(interlock::percent_decode(encoded) == name, "percent encoding can be undone");
  require(interlock::is_plain_utf8(interlock::printable(name, 200)), "what is printed is UTF-8");
  (void)interlock::percent_decode(name);
}

void in_redis(const std::string& prefix, const std::string& name) {
  const auto keys = fuzz::accepted([&] { return interlock::redis::KeyNames(prefix); });
  if (!keys) return;
  const auto lock = fuzz::accepted([&] { return keys->of(name); });
  if (!lock) return;
  require(keys->resource_of(lock->lock) == name, "the key of a lock has its name");
  require(keys->resource_of(lock->queue) == name, "the key of a queue has its name");
  using interlock::redis::slot_of;
  require(slot_of(lock->queue) == slot_of(lock->lock) && slot_of(lock->who) == slot_of(lock->lock),
          "all keys of a lock are in its slot");
  require(lock->queue.starts_with(keys->side(name)), "keys beside a lock begin alike");
  (void)keys->pattern(name);
}

void in_etcd(const std::string& prefix, const std::string& name) {
  using interlock::etcd::Letter;
  const interlock::etcd::Keys keys(prefix);
  const auto row = keys.row(name);
  for (const auto letter :
       {Letter::holds, Letter::shares, Letter::hurries, Letter::waits, Letter::reads}) {
    const auto key = keys.key(name, letter, "chair");
    const auto place = keys.parse(key);
    require(place && place->resource == name && place->letter == letter && place->chair == "chair",
            "the key of a lock says what it is");
    require(row.begin <= key && key < row.end, "a key is in its row");
  }
  require(!keys.parse(keys.recall("client")), "what takes back a request is no key of a lock");
}

}  // namespace

void fuzz::run(std::string_view input) {
  const std::string prefix(next_line(input));
  const std::string name(input);
  as_text(name);
  (void)interlock::etcd::Keys(prefix).parse(name);
  if (const auto keys = accepted([&] { return interlock::redis::KeyNames(prefix); }))
    (void)keys->resource_of(name);
  const bool is_name = accepted([&] {
                         interlock::check_resource(name);
                         return true;
                       }).has_value();
  require(interlock::file::shard_of(name) < interlock::file::kShards, "every name has a file");
  if (!is_name) return;
  for (const auto& above : interlock::ancestors(name)) {
    require(name.starts_with(above + "/"), "an ancestor is above");
    interlock::check_resource(above);
  }
  in_redis(prefix, name);
  if (interlock::is_plain_utf8(prefix)) in_etcd(prefix, name);
}
