// What a Redis server sends, byte by byte: replies, and the errors in them.
#include <algorithm>

#include "backends/redis/cluster.hpp"
#include "backends/redis/reader.hpp"
#include "fuzz.hpp"

namespace {

namespace redis = interlock::redis;

constexpr std::string_view kSecret = "hunter2-secret";

void look(redisReply& reply) {
  (void)redis::number_of(reply);
  for (auto* element : redis::elements_of(reply)) look(*element);
  if (!redis::is_error(reply)) return;
  redis::hide_in_error(reply, {kSecret});
  const auto text = redis::text_of(reply);
  fuzz::require(text.find(kSecret) == text.npos, "no error shows a password");
  const auto error = redis::to_error(text, "redis://node", "redis.call('get', KEYS[1])\n");
  fuzz::require(!error.message().empty(), "an error has words");
  (void)redis::parse_redirect(text);
}

}  // namespace

// The first byte is the size of the pieces in which the rest comes.
void fuzz::run(std::string_view input) {
  if (input.empty()) return;
  const std::size_t piece = 1U + static_cast<unsigned char>(input.front());
  input.remove_prefix(1);
  redis::Reader reader;
  (void)accepted([&] {
    for (; !input.empty(); input.remove_prefix(std::min(piece, input.size()))) {
      reader.feed(input.substr(0, piece));
      while (const auto reply = reader.next()) {
        look(**reply);
        for (const auto& range : redis::parse_slots(**reply))
          require(range.first >= 0 && range.last < redis::kSlots, "a slot is below 16384");
      }
    }
    return true;
  });
}
