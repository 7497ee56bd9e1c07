// Rule 14: bad input is refused before any I/O; odd input is just a name.
#include <sys/resource.h>

#include "conformance/seam.hpp"
#include "conformance/suite.hpp"
#include "conformance/wire.hpp"

namespace interlock::conformance {
namespace {

CONFORMANCE_SUITE(Input);

template <class Make>
void expect_invalid(Make make, const std::string& what, Errc code = Errc::invalid) {
  try {
    make();
    FAIL() << what << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), code) << what << ": " << error.what();
    EXPECT_FALSE(error.message().empty());
  }
}

TEST_P(Input, WhatNoStoreWouldTakeIsRefusedBeforeAnyCall) {  // rows 2.2, 2.3 and 2.4
  COVERS(Rule<14>, Case<11>);
  const auto wire = std::make_shared<Wire>();
  const Client locks(std::make_unique<Wired>(store().open(), wire));
  for (const Duration ttl : {Duration(0s), Duration(-1s), Duration(1ns), Duration(24h * 400)}) {
    expect_invalid([&] { static_cast<void>(Mutex(locks, "r", {.ttl = ttl}).try_acquire()); },
                   "a ttl of " + format_duration(ttl), Errc::invalid_ttl);
  }
  for (const std::string& owner_id : {std::string(), std::string(1025, 'x'), std::string("a\nb")}) {
    expect_invalid(
        [&] { static_cast<void>(Mutex(locks, "r", {.owner_id = owner_id}).try_acquire()); },
        "the owner id " + owner_id, Errc::invalid_owner);
  }
  for (const std::string& name_space : {std::string(512, 'x'), std::string("a\nb")}) {
    expect_invalid(
        [&] { static_cast<void>(Mutex(locks, "r", {.name_space = name_space}).try_acquire()); },
        "the namespace " + name_space);
  }
  expect_invalid([&] { static_cast<void>(Mutex(locks, "", {.name_space = "x"}).try_acquire()); },
                 "no name in a namespace");
  const std::vector<std::string> bad_names{
      "",         std::string(513, 'x'), "a\nb",         std::string("a\0b", 3), "\x7f", "\xff\xfe",
      "\xc0\xaf", "\xed\xa0\x80",        "half \xe2\x82"};
  for (const auto& name : bad_names) {
    expect_invalid([&] { static_cast<void>(Mutex(locks, name).try_acquire()); }, "name " + name);
    expect_invalid(
        [&] {
          static_cast<void>(MultiLock(locks, {exclusive("a"), exclusive(name)}).try_acquire());
        },
        "name in a set " + name);
  }
  expect_invalid([&] { static_cast<void>(MultiLock(locks, std::vector<Part>{}).try_acquire()); },
                 "an empty set");
  expect_invalid([&] { static_cast<void>(Semaphore(locks, "s", 0).try_acquire()); }, "capacity 0");
  expect_invalid([&] { static_cast<void>(Semaphore(locks, "s", 3, {}, 0).try_acquire()); },
                 "weight 0");
  expect_invalid([&] { static_cast<void>(Semaphore(locks, "s", 3, {}, 4).try_acquire()); },
                 "weight 4 of 3");
  expect_invalid(
      [&] {
        static_cast<void>(MultiLock(locks, {exclusive("s"), slots("s", 1, 3)}).try_acquire());
      },
      "one name as two kinds");
  expect_invalid([&] { static_cast<void>(Mutex(locks, "r", {.label = "a\nb"}).try_acquire()); },
                 "a label of two lines");
  expect_invalid(
      [&] {
        static_cast<void>(Mutex(locks, "r", {.identity = std::string(1025, 'x')}).try_acquire());
      },
      "a long identity", Errc::invalid_owner);
  for (const auto* token : {"", "nonsense", "il1:", "{}", "00000000000000000000000000000000"}) {
    expect_invalid([&] { static_cast<void>(locks.adopt(token)); }, std::string("token ") + token);
  }
  EXPECT_EQ(wire->calls(), 0);
}

TEST_P(Input, AnEmptyOwnerIsRefused) {  // rows 2.3 and 2.4
  COVERS(Rule<14>, Case<11>);
  auto claim = claim_of("r");
  EXPECT_NO_THROW(check_claim(claim));
  claim.owner = {};
  expect_invalid([&] { check_claim(claim); }, "an empty owner", Errc::invalid_owner);
}

TEST_P(Input, TheErrorNamesTheResource) {
  COVERS(Rule<14>);
  try {
    static_cast<void>(Mutex(client(), "billing", {.ttl = 0s}).try_acquire());
    FAIL() << "a ttl of nothing was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("billing"), std::string::npos) << error.what();
  }
}

TEST_P(Input, OddNamesAreJustNames) {
  COVERS(Rule<14>);
  const std::vector<std::string> names{"../../../etc/passwd",
                                       "/etc/passwd",
                                       "..",
                                       ".",
                                       "/",
                                       "//",
                                       "a//b",
                                       "a/",
                                       "/a",
                                       "~",
                                       "a\"b",
                                       "a'b",
                                       "'; DROP TABLE locks; --",
                                       "\\",
                                       "\\u0000",
                                       "{tag}",
                                       "{a}{b}",
                                       "*",
                                       "?",
                                       "[a-z]",
                                       "%s%n%x",
                                       "%00",
                                       "<script>alert(1)</script>",
                                       "&amp;",
                                       "$(reboot)",
                                       "`reboot`",
                                       "a b",
                                       " ",
                                       ",",
                                       "redis.call('FLUSHALL')",
                                       "]]",
                                       "--",
                                       "null",
                                       "true",
                                       "0",
                                       "-1",
                                       "{\"res\": 1}",
                                       "🔒",
                                       "\u202e",
                                       std::string(512, 'x'),
                                       std::string(511, 'x') + "y",
                                       "con",
                                       "lpt1",
                                       "-rf",
                                       "=1+1"};
  const auto locks = client();
  std::vector<Lease> leases;
  for (const auto& name : names) {
    auto attempt =
        Mutex(locks, name, {.label = name.substr(0, 100), .hierarchy = false}).try_acquire();
    ASSERT_TRUE(attempt) << '"' << name << '"';
    leases.push_back(std::move(*attempt));
  }
  const auto other = client();
  for (const auto& name : names) {
    const auto state = look(name);
    ASSERT_EQ(state.holders.size(), 1U) << '"' << name << '"';
    EXPECT_EQ(state.resource, name);
    EXPECT_EQ(state.holders[0].who.label, name.substr(0, 100));
    EXPECT_FALSE(Mutex(other, name, {.hierarchy = false}).try_acquire()) << '"' << name << '"';
  }
  EXPECT_EQ(other.inspect().resources.size(), names.size());
  leases.clear();
  EXPECT_TRUE(eventually([&] { return nothing_left(); }));
}

TEST_P(Input, AWeirdIdentityIsJustText) {
  COVERS(Rule<14>, Rule<12>);
  const Options odd{.label = "\"}],{", .identity = "'\"\\ {} \u00e4"};
  const auto first = Mutex(client(), "r", odd).acquire();
  EXPECT_TRUE(Mutex(client(), "r", odd).try_acquire());
  EXPECT_EQ(look("r").holders.at(0).who.identity, odd.identity);
  EXPECT_EQ(look("r").holders.at(0).who.label, odd.label);
}

TEST_P(Input, TheLargestSetIsTakenAndALargerOneRefused) {
  COVERS(Rule<14>, Rule<2>);
  const auto locks = client();
  std::vector<std::string> names;
  for (int i = 0; i < 1024; ++i) names.push_back("n" + std::to_string(i));
  try {
    const auto lease = MultiLock(locks, names).acquire();
    EXPECT_EQ(lease.resources().size(), 1024U);
  } catch (const Error& error) {  // of a store that opens a file for each
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_LT(limit.rlim_cur, 1200U) << error.what();
    EXPECT_EQ(error.errc(), Errc::refused) << error.what();
  }
  names.emplace_back("one more");
  expect_invalid([&] { static_cast<void>(MultiLock(locks, names).try_acquire()); }, "1025 names");
}

TEST(Connecting, ANonsenseUrlIsRefusedWithAnErrorThatShowsOnesThatMakeSense) {
  COVERS(Rule<14>);
  for (const auto* url :
       {"", "nonsense", "ftp://example.org", "://", "memory", "memory:?nonsense=1"}) {
    try {
      static_cast<void>(connect(url));
      FAIL() << '"' << url << "\" was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::invalid) << url << ": " << error.what();
    }
  }
  try {
    static_cast<void>(connect("ftp://example.org"));
  } catch (const Error& error) {
    for (const auto& store : stores::all()) {
      EXPECT_NE(std::string(error.what()).find(store.schemes.at(0)), std::string::npos)
          << "what about " << store.name << "? " << error.what();
    }
  }
}

TEST(Connecting, NoErrorShowsAPassword) {
  COVERS(Rule<14>);
  try {
    static_cast<void>(connect("nonsense://user:hunter2@example.org/x"));
    FAIL() << "there is no such store";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("hunter2"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace interlock::conformance
