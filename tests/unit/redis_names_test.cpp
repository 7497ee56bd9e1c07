// What Redis keys are called, which slot they are in, and what its URLs and errors mean.
#include <gtest/gtest.h>

#include <set>

#include "backends/redis/address.hpp"
#include "backends/redis/keys.hpp"
#include "backends/redis/protocol.hpp"
#include "interlock/client.hpp"

using namespace interlock;
using namespace interlock::redis;

namespace {

const std::vector<std::string> kNames = {
    "orders", "a:b", "table/row", "{eu}:orders", "x{eu}y",       "{}empty",
    "}{",     "a}b", "a{b",       "{{x}}",       "user:{1}:{2}", "\xc3\xa4\xe2\x82\xac",
    "queue",  "who", "x:queue",   "{x}:queue"};

TEST(RedisKeys, SlotsAreThoseOfTheSpecification) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3 % 16384);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
  EXPECT_EQ(slot_of("foo{}{bar}"), slot_of("foo{}{bar}"));
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar"));
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
}

TEST(RedisKeys, AllKeysOfALockAreInOneSlot) {
  const KeyNames names("interlock:");
  for (const auto& name : kNames) {
    const auto keys = names.of(name);
    EXPECT_EQ(keys.lock, "interlock:" + name);
    EXPECT_EQ(slot_of(keys.queue), slot_of(keys.lock)) << name;
    EXPECT_EQ(slot_of(keys.who), slot_of(keys.lock)) << name;
    EXPECT_EQ(slot_of(names.side(name) + "holders"), slot_of(keys.lock)) << name;
  }
}

TEST(RedisKeys, NoNameIsMistakenForAnothersKey) {
  for (const auto* prefix : {"interlock:", "p", "a}b:"}) {
    const KeyNames names(prefix);
    std::set<std::string> all;
    std::size_t count = 0;
    for (const auto& name : kNames) {
      const auto keys = names.of(name);
      for (const auto& key : {keys.lock, keys.queue, keys.who}) {
        all.insert(key);
        ++count;
      }
      EXPECT_EQ(names.resource_of(keys.lock), name);
      EXPECT_EQ(names.resource_of(keys.queue), name) << keys.queue;
      EXPECT_EQ(names.resource_of(keys.who), std::nullopt);
    }
    EXPECT_EQ(all.size(), count);
    EXPECT_FALSE(all.contains(names.fence()));
    EXPECT_EQ(names.resource_of(names.fence()), std::nullopt);
  }
  EXPECT_THROW(KeyNames("{x"), Error);
  EXPECT_THROW(KeyNames("a\nb"), Error);
  EXPECT_THROW((void)KeyNames("").of("{x}:queue"), Error);
  EXPECT_EQ(KeyNames("").of("x").lock, "x");
}

TEST(RedisKeys, ThereIsATextInEverySlot) {
  const auto texts = texts_in_slots("interlock:");
  ASSERT_EQ(texts.size(), 16384U);
  for (std::size_t slot = 0; slot < texts.size(); slot += 997)
    EXPECT_EQ(slot_of(KeyNames::fence(texts[slot])), slot);
}

Errc refused(const std::string& url) {
  try {
    (void)stores::open(url);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos) << error.what();
    return error.errc();
  }
  return Errc{};
}

TEST(RedisUrls, NonsenseIsRefusedBeforeAnyConnection) {
  for (const auto* url : {"redis://",
                          "redis://:s3cret@",
                          "redis://h:99999",
                          "redis://h:port",
                          "redis://h/x",
                          "redis://h/-1",
                          "redis://a,b",
                          "redis://h?perfix=x",
                          "redis://h?prefix={x",
                          "redis://[::1",
                          "redis://h?timeout=5",
                          "redis://h?timeout=1ms",
                          "redis://h?timeout=25h",
                          "redis://h?ca=/x",
                          "redis+unix://h/x",
                          "redis+unix://",
                          "redis+sentinel://s1,s2",
                          "redis+cluster://h/1",
                          "redis://h?min-replicas=x",
                          "rediss://h?ca=/does/not/exist",
                          "redis://u:s3cret@h?password-env=X",
                          "redis://h?password-file=/does/not/exist",
                          "redis://h?password-env=INTERLOCK_NOT_SET"}) {
    EXPECT_EQ(refused(url), Errc::invalid) << url;
  }
}

TEST(RedisUrls, SecretsAreNotShown) {
  const auto locks = connect("redis://me:s3cret@127.0.0.1:1/2?timeout=100ms");
  EXPECT_EQ(locks.traits().where, "redis://127.0.0.1:1/2");
  try {
    (void)locks.inspect();
    ADD_FAILURE() << "nobody listens there";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unreachable);
    EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:1"), std::string::npos);
  }
}

TEST(RedisErrors, AreToldApart) {
  const auto code = [](const char* text) { return to_error(text, "n").errc(); };
  EXPECT_EQ(code("NOAUTH Authentication required."), Errc::refused);
  EXPECT_EQ(code("WRONGPASS invalid"), Errc::refused);
  EXPECT_EQ(code("NOPERM this user has no permissions"), Errc::refused);
  EXPECT_EQ(code("LOADING Redis is loading"), Errc::unreachable);
  EXPECT_EQ(code("READONLY You can't write"), Errc::unreachable);
  EXPECT_EQ(code("CLUSTERDOWN The cluster is down"), Errc::unreachable);
  EXPECT_EQ(code("OOM command not allowed"), Errc::refused);
  EXPECT_EQ(code("WRONGTYPE Operation script: 1, on @user_script:1."), Errc::wrong_kind);
  EXPECT_EQ(code("ERR Error running script (call to f_1): @user_script:9: WRONGTYPE Operation"),
            Errc::wrong_kind);
  EXPECT_EQ(code("ERR something new"), Errc::refused);
  EXPECT_NE(std::string(to_error("ERR something new", "n").what()).find("something new"),
            std::string::npos);
}

}  // namespace
