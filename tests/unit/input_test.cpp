// What is refused before any I/O, and how text becomes values: names, durations, URLs, tokens,
// owners.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "core/secrets.hpp"
#include "core/text.hpp"
#include "core/token.hpp"
#include "interlock/interlock.hpp"

using namespace interlock;
using namespace std::chrono_literals;

namespace {

template <class F>
std::string refusal(F f, Errc code = Errc::invalid) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.errc(), code) << e.what();
    return e.what();
  }
  return "accepted";
}

TEST(Names, AreOneTo512BytesOfUtf8WithoutControlCharacters) {
  for (const char* good : {"a", "billing:invoice-42", "../../etc/passwd",
                           "x'); DROP TABLE locks;--", "🔒", "a b", "%s%n", "<b>"}) {
    EXPECT_NO_THROW(check_resource(good)) << good;
  }
  EXPECT_NO_THROW(check_resource(std::string(512, 'x')));
  EXPECT_NE(refusal([] { check_resource(""); }).find("1 to 512"), std::string::npos);
  EXPECT_NE(refusal([] { check_resource(std::string(513, 'x')); }).find("513"), std::string::npos);
  for (const std::string& bad :
       {std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f"), std::string("\xc2\x80"),
        std::string("\xff"), std::string("\xc0\xaf"), std::string("\xed\xa0\x80"),
        std::string("\xf5\x80\x80\x80"), std::string("\xe2\x82")}) {
    EXPECT_NE(refusal([&] { check_resource(bad); }), "accepted");
  }
  EXPECT_NE(refusal([] { check_resource("a\x1b[31m"); }).find("\\x1b"), std::string::npos)
      << "shown harmlessly";
}

TEST(Texts, ForPeopleHaveNothingThatATerminalActsOnOrDoesNotShow) {
  const auto shown = [](std::string_view text) { return printable(text, 100); };
  for (const auto& [text, wanted] : std::initializer_list<std::pair<std::string, std::string>>{
           {"a\x1b[0m", "a\\x1b[0m"},
           {"a\x7f", "a\\x7f"},
           {"a\xc2\x9b", "a\\xc2\\x9b"},
           {"a\xff", "a\\xff"},
           {"\u061c", "\\u061c"},
           {"\u200b\u200c\u200d\u200e\u200f", "\\u200b\\u200c\\u200d\\u200e\\u200f"},
           {"\u2028\u2029", "\\u2028\\u2029"},
           {"\u202a\u202e", "\\u202a\\u202e"},
           {"\u2060\u2066\u2069", "\\u2060\\u2066\\u2069"},
           {"\ufeff", "\\ufeff"}}) {
    EXPECT_EQ(shown(text), wanted);
  }
  for (const char* fine :
       {"Müller", "naïve", "日本語", "\u2010\u2027\u202f\u205f\u206a", "🔒", "\u061b\u061d"})
    EXPECT_EQ(shown(fine), fine);
  EXPECT_NO_THROW(check_resource("a\u202eb")) << "as a name, it is legal";
}

TEST(Claims, AreCheckedBeforeAnyIo) {
  Client client(memory_store());
  for (const Duration ttl : {Duration(0s), Duration(-1s), Duration(24h * 400)}) {
    const auto text = refusal([&] { Mutex(client, "k", {.ttl = ttl}); }, Errc::invalid_ttl);
    EXPECT_NE(text.find("'k'"), std::string::npos) << text;
  }
  const auto label = refusal([&] { Mutex(client, "k", {.label = "a\nb"}); });
  EXPECT_NE(label.find("'k'"), std::string::npos) << "names the lock: " << label;
  EXPECT_NE(refusal([&] { Mutex(client, "k", {.max_wait = 0s}); }), "accepted");
  EXPECT_NE(refusal([&] { Semaphore(client, "k", 0); }), "accepted");
  EXPECT_NE(refusal([&] { Semaphore(client, "k", 2, {}, 3); }), "accepted");
  EXPECT_NE(refusal([&] { MultiLock(client, std::vector<std::string>{}); }), "accepted");
  EXPECT_NE(refusal([&] { MultiLock(client, {exclusive("a"), slots("a", 1, 2)}); }), "accepted");
  EXPECT_NE(refusal([&] { (void)Mutex(client, "k").try_acquire_times({.attempts = 0}); }),
            "accepted");
  EXPECT_NE(refusal(
                [] {
                  check_claim({.owner = {},
                               .parts = {{.resource = "k"}},
                               .ttl = 1s,
                               .who = std::make_shared<const Who>()});
                },
                Errc::invalid_owner)
                .find("owner"),
            std::string::npos);
}

TEST(Hierarchies, AddTheirAncestors) {
  EXPECT_EQ(ancestors("a/b/c"), (std::vector<std::string>{"a", "a/b"}));
  EXPECT_EQ(ancestors("/data/x/"), (std::vector<std::string>{"/data"}));
  EXPECT_EQ(ancestors("https://host/x"), (std::vector<std::string>{"https://host"}));
  EXPECT_TRUE(ancestors("plain").empty());
  EXPECT_TRUE(ancestors("/").empty());
  std::vector<Part> parts{exclusive("t/b"), exclusive("t/a"), exclusive("t/b")};
  normalize(parts, true);
  EXPECT_EQ(parts, (std::vector<Part>{{.resource = "t", .mode = Mode::shared, .ancestor = true},
                                      exclusive("t/a"),
                                      exclusive("t/b")}));
  std::vector<Part> both{exclusive("t"), exclusive("t/a")};
  normalize(both, true);
  EXPECT_EQ(both, (std::vector<Part>{exclusive("t"), exclusive("t/a")})) << "the stronger one wins";
  std::string deep = "a";
  for (int i = 0; i < 40; ++i) deep += "/a";
  EXPECT_NE(refusal([&] {
              std::vector<Part> p{exclusive(deep)};
              normalize(p, true);
            }),
            "accepted");
}

TEST(Durations, HaveUnits) {
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("1m30s"), 90s);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("0s"), 0s);
  for (const char* bad : {"", "10", "s", "-1s", "1 s", "10x", "1s2s", "1s1m", "1e3s",
                          "99999999999999h", ".5s", "1..s", "1s ", "+1s"}) {
    EXPECT_NE(refusal([&] { (void)parse_duration(bad); }), "accepted") << bad;
  }
  EXPECT_NE(refusal([] { (void)parse_duration("10"); }).find("10s"), std::string::npos)
      << "says how";
  EXPECT_EQ(format_duration(250ms), "250ms");
  EXPECT_EQ(format_duration(90s), "1m30s");
  EXPECT_EQ(format_duration(1500ms), "1.5s");
  EXPECT_EQ(format_duration(2h), "2h");
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(999'999'999ns), "1s");
  EXPECT_EQ(format_duration(59'999ms), "1m");
  EXPECT_EQ(format_duration(-1s), "-1s");
  EXPECT_EQ(format_duration(999'600ns), "1ms");
}

TEST(Urls, ShowNothingOfAPasswordThatBrokeThem) {
  for (const char* text : {"redis://:s3c/cr3t@h:1",
                           "redis://:x?cr3t@h",
                           "postgres://u:s3c/cr3t@h",
                           "etcd://u:s3c/cr3t@h",
                           "redis://:s3cret",
                           "redis://u:s3cret/1",
                           "redis://:a@b/s3cret",
                           "redis://:12/34cr3t@h",
                           "redis://u:1?cr3t",
                           "redis:s3cret@h",
                           "redis://s3cret@h",
                           "redis://h?Password=s3cret",
                           "redis://h?PASS=s3cret",
                           "redis://h?pasword=s3cret",
                           "redis://h?auth=s3cret",
                           "redis://h?token=s3cret",
                           "redis://h?prefix=s3cret@h",
                           "redlock://h1,h2,h3?nodes=redis://:s3cret@h1",
                           "redlock:?nodes=redis://:s3cret",
                           "redis://[u:s3cret]:1",
                           "redlock:?nodes=[x:s3cret@h]"}) {
    const auto shown = Url::parse(text).to_string();
    EXPECT_EQ(shown.find("3c"), std::string::npos) << shown;
    EXPECT_EQ(shown.find("cr3t"), std::string::npos) << shown;
    EXPECT_NE(shown.find("***"), std::string::npos) << shown;
  }
  EXPECT_EQ(Url::parse("redis://:s3c/cr3t@h:1").to_string(), "redis://***");
  EXPECT_EQ(Url::parse("redis://h?auth=s3cret").to_string(), "redis://h?auth=***");
  const auto unknown = refusal([] { connect("memory:?s3cret"); });
  EXPECT_EQ(unknown.find("s3cret"), std::string::npos) << unknown;
  const auto bracketed = refusal([] { connect("[redis://u:s3cret@h]:1"); });
  EXPECT_EQ(bracketed.find("s3cret"), std::string::npos) << bracketed;
}

TEST(Urls, WithAUserAndNoHostAreShownWithBothSlashes) {
  EXPECT_EQ(Url::parse("etcd://root@").to_string(), "etcd://root@");
  EXPECT_EQ(Url::parse("etcd://root:s3cret@?timeout=1s").to_string(),
            "etcd://root:***@?timeout=1s");
}

TEST(Urls, ThatMakeSenseAreShown) {
  for (const char* text :
       {"memory:", "file:///var/lib/a@b/locks", "redis://h:6379/0?db=1&prefix=app%3a",
        "redis://[::1]:6379", "postgres://me@db_1.internal:5432,db-2/app?sslmode=verify-full",
        "redis+unix:///run/redis.sock?timeout=5s", "etcd://h1,h2,h3?password-env=X",
        "redlock:?nodes=h1%3a1%2ch2%3a2", "redis+sentinel://h1,h2/main/0",
        "rediss://h?ca=%2fetc%2fca.pem"}) {
    EXPECT_EQ(Url::parse(text).to_string(), text);
  }
}

TEST(Secrets, AreTakenOutOfWhatAServerSays) {
  EXPECT_EQ(core::Secrets{"s3cret"}.hide("wrong: s3cret, xs3crety"), "wrong: ***, x***y");
  const core::Secrets letter{"p"};
  EXPECT_EQ(letter.hide("invalid username-password pair"), "invalid username-password pair");
  EXPECT_EQ(letter.hide("no command 'p' p"), "no command '***' ***");
  EXPECT_EQ(letter.hide("ppp"), "ppp");
  EXPECT_EQ(core::Secrets{}.hide("nothing"), "nothing");
  EXPECT_EQ(core::Secrets{""}.hide("nothing"), "nothing");
  EXPECT_EQ((core::Secrets{"inner", "the inner one"}.hide("the inner one, inner")), "***, ***");
}

TEST(Secrets, AreTakenOutInEverySpellingOfAUrl) {
  const core::Secrets secrets{"a/b c%ü"};
  for (const char* text : {"a/b c%ü", "a%2Fb%20c%25%c3%bc", "a%2fb+c%25ü", "%61/b c%25ü"})
    EXPECT_EQ(secrets.hide(std::string("no: ") + text + "!"), "no: ***!") << text;
  for (const char* text : {"a/b", "a%2", "a%2fb c%", "%", "a/b_c%ü"})
    EXPECT_EQ(secrets.hide(text), text);
}

TEST(Urls, AreTakenApartAndNeverShowPasswords) {
  auto url = Url::parse("redis://me:s%40cret@h1:6379,h2/0?prefix=app%3A&password=x");
  EXPECT_EQ(url.scheme, "redis");
  EXPECT_EQ(url.user, "me");
  EXPECT_EQ(url.password, "s@cret");
  EXPECT_EQ(url.authority, "h1:6379,h2");
  EXPECT_EQ(url.path, "/0");
  EXPECT_EQ(url.to_string().find("cret"), std::string::npos);
  EXPECT_EQ(url.to_string().find("=x"), std::string::npos);
  EXPECT_EQ(url.take("prefix"), "app:");
  EXPECT_EQ(Url::parse("memory:").path, "");
  EXPECT_EQ(Url::parse("file:///var/lib/my%20locks").path, "/var/lib/my locks");
  for (const char* bad : {"", "nonsense", "file", "://x", "FILE:///x", "file:///a%zz",
                          "file:///a%00b", "memory:?a=1&a=2"}) {
    EXPECT_NE(refusal([&] { (void)Url::parse(bad); }), "accepted") << bad;
  }
  const auto unknown = refusal([] { connect("gopher://x"); });
  EXPECT_NE(unknown.find("memory:"), std::string::npos) << "says which there are: " << unknown;
  EXPECT_NE(refusal([] { connect("memory:?colour=red"); }).find("colour"), std::string::npos);
}

TEST(Tokens, SurviveTheRoundTripInAnyShell) {
  Claim claim{.owner = Owner::random(),
              .parts = {exclusive("a"), exclusive("odd '\".$ name/🔒")},
              .ttl = 1500ms,
              .who = std::make_shared<const Who>()};
  const auto text = core::make_token(claim, "odd '\".$ name/🔒");
  EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.%"), std::string::npos)
      << text;
  const auto token = core::parse_token(text);
  EXPECT_EQ(token.owner, claim.owner);
  EXPECT_EQ(token.ttl, 1500ms);
  EXPECT_EQ(token.resources, (std::vector<std::string>{"odd '\".$ name/🔒", "a"}));
  for (const std::string& bad :
       {std::string(""), std::string("il1"), std::string("il1.abc.1.x"), "il2" + text.substr(3),
        text.substr(0, 40), text + ".", text + ".%zz",
        std::string("il1.00000000000000000000000000000000.1000.x")}) {
    EXPECT_NE(refusal([&] { (void)core::parse_token(bad); }), "accepted") << bad;
  }
}

TEST(Owners, AreNeverTheSameNotEvenAfterAFork) {
  std::set<Owner> seen;
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(seen.insert(Owner::random()).second);
  const auto one = Owner::random();
  EXPECT_EQ(Owner::parse(one.to_string()), one);
  EXPECT_EQ(Owner::parse("xyz"), std::nullopt);
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const auto child = fork();
  if (child == 0) {
    const auto mine = Owner::random();
    _exit(write(fds[1], &mine, sizeof(mine)) == sizeof(mine) ? 0 : 1);
  }
  const auto mine = Owner::random();
  Owner theirs;
  ASSERT_EQ(read(fds[0], &theirs, sizeof(theirs)), static_cast<ssize_t>(sizeof(theirs)));
  EXPECT_NE(mine, theirs);
  waitpid(child, nullptr, 0);
  close(fds[0]);
  close(fds[1]);
}

TEST(Errors, NameTheLockTheNodeAndWhatToDo) {
  const Error e(Errc::unreachable, "no answer within 5s",
                {.resource = "nightly", .node = "file:///x", .maybe_held = true});
  EXPECT_EQ(std::string(e.what()), "'nightly': no answer within 5s [file:///x]: store unavailable");
  EXPECT_TRUE(e.retryable());
  EXPECT_TRUE(e.maybe_held());
  EXPECT_EQ(e.code(), make_error_code(Errc::unreachable));
  EXPECT_EQ(e.about("other").resource(), "other");
}

}  // namespace
