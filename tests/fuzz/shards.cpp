// The files of a file store. Its user may have edited them, and a disk may have damaged them.
#include <algorithm>

#include "backends/file/shard.hpp"
#include "fuzz.hpp"

namespace {

using interlock::LockTable;
using interlock::TimePoint;
namespace file = interlock::file;

const std::string kBoot = "boot";
constexpr TimePoint kNow{std::chrono::hours(24)};

LockTable empty_table() {
  return LockTable({.next_fence = [](const std::string&) { return std::uint64_t{1}; }});
}

// The one that the first name belongs to.
file::ShardId shard_of(std::string_view text) {
  constexpr std::string_view kName = "\"res\":\"";
  const auto at = text.find(kName);
  if (at == text.npos) return 0;
  text.remove_prefix(at + kName.size());
  return file::shard_of(text.substr(0, text.find('"')));
}

// Whatever the records say: asking, looking and giving back work.
void use(LockTable& table) {
  (void)table.inspect({}, kNow);
  std::vector<std::string> names;
  for (const auto& [name, row] : table.rows()) names.push_back(name);
  std::vector<interlock::Wake> wakes;
  for (const auto& name : names) {
    for (const auto mode :
         {interlock::Mode::exclusive, interlock::Mode::shared, interlock::Mode::slots}) {
      const interlock::Claim claim{
          .owner = {.high = 1, .low = 2},
          .parts = {{.resource = name, .mode = mode, .slots = 1, .capacity = 2}},
          .ttl = std::chrono::seconds(1),
          .who = std::make_shared<const interlock::Who>()};
      (void)table.acquire(claim, true, {}, kNow, wakes);
      (void)table.in_the_way(claim, 10);
      (void)table.renew(claim, {}, kNow, wakes);
      (void)table.release(claim, 0, kNow, wakes);
    }
  }
  table.sweep(kNow + std::chrono::hours(24 * 400), wakes);
}

}  // namespace

void fuzz::run(std::string_view input) {
  const auto id = shard_of(input);
  auto table = empty_table();
  const auto state =
      accepted([&] { return file::read_shard(input, id, {.boot = kBoot, .now = kNow}, table); });
  if (!state) return;
  const auto text = file::write_shard(table, id, *state, kBoot);
  auto again = empty_table();
  const auto same =
      accepted([&] { return file::read_shard(text, id, {.boot = kBoot, .now = kNow}, again); });
  require(same.has_value(), "what was read and written can be read: " + text);
  require(file::write_shard(again, id, *same, kBoot) == text, "the same rows have the same text");
  use(table);
}
