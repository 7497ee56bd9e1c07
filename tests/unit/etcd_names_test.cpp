// What the etcd store calls its keys and writes into them, and how it counts time. No server.
#include <gtest/gtest.h>

#include "backends/etcd/chairs.hpp"
#include "backends/etcd/keys.hpp"
#include "backends/etcd/record.hpp"
#include "backends/etcd/sightings.hpp"

namespace interlock::etcd {
namespace {

using namespace std::chrono_literals;

TEST(EtcdKeys, AKeyIsTakenApartAgain) {
  const Keys keys("p/");
  const auto key = keys.key("a/b c", Letter::waits, "chair.7");
  EXPECT_EQ(key, "p/a/b c\twchair.7");
  const auto place = keys.parse(key);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->resource, "a/b c");
  EXPECT_EQ(place->letter, Letter::waits);
  EXPECT_EQ(place->chair, "chair.7");
  for (const auto* other : {"", "p/", "p/a", "q/a\thx", "p/a\t", "p/a\th", "p/\thx", "p/a\tzz"})
    EXPECT_FALSE(keys.parse(other)) << other;
}

TEST(EtcdKeys, ARowHasAllKeysOfAResourceAndNoOthers) {
  const Keys keys("p/");
  const auto inside = [](const Range& range, const std::string& key) {
    return range.begin <= key && key < range.end;
  };
  const auto row = keys.row("a");
  for (const auto letter :
       {Letter::holds, Letter::shares, Letter::hurries, Letter::waits, Letter::reads}) {
    const auto key = keys.key("a", letter, "x");
    EXPECT_TRUE(inside(row, key));
    EXPECT_EQ(keys.parse(key)->letter, letter);
    EXPECT_EQ(inside(keys.holders("a"), key), seat_of(letter) == Seat::holds);
  }
  for (const auto* other : {"aa", "a/b", "a b", "A", "b", "a!"})
    EXPECT_FALSE(inside(row, keys.key(other, Letter::holds, "x"))) << other;
}

// A claim's parts are sorted, and wide claims read from the first row to the last.
TEST(EtcdKeys, RowsAreOrderedAsTheirNamesAre) {
  const Keys keys("");
  const std::vector<std::string> names{"a", "a b", "a/b", "aa", "b", "\u00e4"};
  for (std::size_t i = 1; i < names.size(); ++i)
    EXPECT_LE(keys.row(names[i - 1]).end, keys.row(names[i]).begin) << names[i];
}

TEST(EtcdKeys, ThereIsNoPrefixThatEndsBeforeItBegins) {
  EXPECT_EQ(Keys("").all("").begin, std::string(1, '\0'));
  EXPECT_LT(Keys("p/").all("").begin, Keys("p/").all("").end);
  EXPECT_LE(Keys("p/").all("\u00e4").begin, Keys("p/").key("\u00e4b", Letter::holds, "x"));
  EXPECT_GT(Keys("p/").all("\u00e4").end, Keys("p/").key("\u00e4b", Letter::holds, "x"));
}

TEST(EtcdRecords, AreReadAsTheyWereWritten) {
  const auto now = BootClock::now();
  Value value{
      .record =
          {.owner = Owner::random(),
           .mode = Mode::slots,
           .slots = 2,
           .capacity = 5,
           .ancestor = true,
           .priority = -3,
           .since = now - 10s,
           .fence = 4711,
           .who = std::make_shared<const Who>(Who{
               .label = "\"}],{", .identity = "\u00e4 \\", .host = "h", .pid = 42, .tied = false})},
      .ttl = 1500us,
      .stronger = true};
  const auto again = decode(encode(value, now), now, "key");
  EXPECT_EQ(again.record.owner, value.record.owner);
  EXPECT_EQ(again.record.mode, Mode::slots);
  EXPECT_EQ(again.record.slots, 2U);
  EXPECT_EQ(again.record.capacity, 5U);
  EXPECT_TRUE(again.record.ancestor);
  EXPECT_EQ(again.record.priority, -3);
  EXPECT_EQ(again.record.fence, 4711U);
  EXPECT_EQ(*again.record.who, *value.record.who);
  EXPECT_EQ(again.ttl, 2ms) << "rounded up, never down";
  EXPECT_TRUE(again.stronger);
  EXPECT_LT(again.record.since, now - 9s);
}

TEST(EtcdRecords, WhatIsNoneIsAnErrorThatNamesTheKey) {
  for (const auto* text : {"", "x", "{}", "[]", R"({"owner":"1","mode":"exclusive","ttl":1})",
                           R"({"owner":"0123456789abcdef0123456789abcdef","mode":"odd","ttl":1})",
                           R"({"owner":"0123456789abcdef0123456789abcdef","mode":"shared"})"}) {
    try {
      static_cast<void>(decode(text, BootClock::now(), "p/the\tkey"));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::corrupt);
      EXPECT_NE(std::string(error.what()).find("p/the"), std::string::npos);
    }
  }
}

TEST(EtcdSightings, CountFromWhenAKeyWasFirstSeenAsItIs) {
  Sightings sightings;
  const auto start = BootClock::now();
  EXPECT_EQ(sightings.see("k", 5, "a", start), start);
  EXPECT_EQ(sightings.see("k", 5, "a", start + 1s), start);
  EXPECT_EQ(sightings.see("k", 6, "a", start + 2s), start + 2s) << "renewed";
  sightings.see_again("k", start + 3s);
  EXPECT_EQ(sightings.see("k", 6, "a", start + 3s), start + 2s);
  EXPECT_EQ(sightings.see("other", 5, "a", start + 3s), start + 3s);
}

// Expected: whoever holds it then was not seen before, whatever its revision.
TEST(EtcdSightings, CountAnewAfterARestoreFromABackup) {
  Sightings sightings;
  const auto start = BootClock::now();
  EXPECT_EQ(sightings.see("k", 6, "a", start), start);
  EXPECT_EQ(sightings.see("k", 5, "b", start + 1s), start + 1s) << "gone back";
  EXPECT_EQ(sightings.see("k", 5, "c", start + 2s), start + 2s) << "and used again";
}

// Expected: a number that does not fit is no number of ours, and no other number either.
TEST(EtcdRecords, NumbersThatAreNoneAreCorrupt) {
  const auto read = [](const std::string& key, const std::string& number) {
    return decode(
        R"({"interlock":1,"owner":"0123456789abcdef0123456789abcdef","mode":"slots","slots":1,"capacity":2,"ttl":1,")" +
            key + "\":" + number + "}",
        BootClock::now(), "key");
  };
  EXPECT_EQ(read("priority", "-3").record.priority, -3);
  for (const auto* key : {"slots", "capacity", "priority", "fence", "pid", "interlock"}) {
    for (const auto* number : {"1e300", "-1e300", "1.5", "36893488147419103232"}) {
      SCOPED_TRACE(key + std::string(" ") + number);
      EXPECT_THROW((void)read(key, number), Error);
    }
  }
  for (const auto* key : {"slots", "capacity", "priority"})
    EXPECT_THROW((void)read(key, "4294967297"), Error) << key;
  for (const auto* key : {"slots", "capacity", "fence", "interlock"})
    EXPECT_THROW((void)read(key, "-1"), Error) << key;
}

// Expected: nobody's time is over because it wrote nonsense.
TEST(EtcdRecords, ATimeThatIsTooLongIsAYear) {
  const auto now = BootClock::now();
  for (const std::string number : {"9223372036854775807", "18446744073709551615", "1e300"}) {
    const auto value = decode(
        R"({"interlock":1,"owner":"0123456789abcdef0123456789abcdef","mode":"shared","ttl":)" +
            number + R"(,"since":-)" + number + "}",
        now, "key");
    EXPECT_GE(value.ttl, 365 * 24h) << number;
    EXPECT_LE(value.ttl, 400 * 24h) << number;
    EXPECT_LE(value.record.since, now) << number;
  }
}

TEST(EtcdChairs, AreUsedAgain) {
  Chairs chairs;
  const auto a = Owner::random();
  const auto b = Owner::random();
  const auto first = chairs.of(a);
  EXPECT_EQ(chairs.of(a), first);
  EXPECT_NE(chairs.of(b), first);
  chairs.free(a);
  EXPECT_EQ(chairs.of(Owner::random()), first);
  chairs.change(b);
  EXPECT_NE(chairs.of(b), first);
  EXPECT_NE(Chairs().of(a), first) << "another client has others";
}

}  // namespace
}  // namespace interlock::etcd
