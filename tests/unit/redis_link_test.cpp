// LinkMachine: each row of its table, without a server.
#include <gtest/gtest.h>

#include <set>

#include "backends/redis/link_machine.hpp"

namespace interlock::redis {
namespace {

using namespace std::chrono_literals;
using State = LinkMachine::State;

const TimePoint kBegin{1h};

/// A reply that owns its text.
class Said {
 public:
  explicit Said(std::string text, int type = REDIS_REPLY_STATUS) : text_(std::move(text)) {
    reply_.type = type;
    reply_.str = text_.data();
    reply_.len = text_.size();
  }
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;
  operator const redisReply&() const { return reply_; }  // NOLINT(google-explicit-constructor)

 private:
  std::string text_;
  redisReply reply_{};
};

std::string text(const redisReply& reply) { return std::string(text_of(reply)); }

/// A machine with two greetings: how to end the connection, and the stamp.
class LinkMachines : public testing::Test {
 protected:
  static LinkMachine::Plan plan() {
    LinkMachine::Plan plan{.name = "redis://one", .endpoint = {.host = "one", .port = "1"}};
    plan.access.connect_timeout = 3s;
    plan.access.call_timeout = 5s;
    plan.greetings = {
        {.bytes = "INFO;", .end = [](const redisReply& info) { return "END " + text(info) + ";"; }},
        {.bytes = "RUN;", .stamp = text}};
    return plan;
  }
  void make(LinkMachine::Plan made, std::uint32_t seed = 1) {
    machine_.emplace(std::move(made), seed);
  }

  void add(std::string bytes, TimePoint deadline = TimePoint::max(), int replies = 1) {
    auto done = [this, bytes](const Outcome&) { told_ = bytes; };
    machine_->add({.bytes = bytes, .deadline = deadline, .replies = replies, .done = done});
  }
  // Events. What was to be done before has been done.
  void advance(bool keep_open = false) { machine_->advance(now_, keep_open, fresh()); }
  void opened() { machine_->opened(fresh()); }
  void hears(const std::string& text, int type = REDIS_REPLY_STATUS) {
    machine_->heard(Said(text, type), now_, fresh());
  }
  void hears_error(const std::string& text) { hears(text, REDIS_REPLY_ERROR); }
  void fails() { machine_->failed(Error(Errc::unreachable, "gone"), now_, fresh()); }

  /// Until the greetings were sent.
  void connect() {
    now_ = std::max(now_, machine_->next(true));
    advance(true);
    opened();
  }
  /// Until all that was added is sent.
  void open() {
    connect();
    hears("7");
    hears("run");
    if (state() == State::greeting) hears("OK");
    advance();
  }

  [[nodiscard]] State state() const { return machine_->state(); }
  [[nodiscard]] Duration pause() const { return machine_->next(true) - now_; }
  std::string name_of(Request& request) {
    request.done({});
    return std::exchange(told_, {});
  }
  std::string answered() { return steps_.answered ? name_of(*steps_.answered) : ""; }
  /// "a in doubt, b": which requests are over without an answer.
  std::string over() {
    std::string names;
    for (auto& each : steps_.over) {
      const auto failure = machine_->failure_of(each, *steps_.why);
      names += (names.empty() ? "" : ", ") + name_of(each.request) +
               (failure.maybe_held() ? " in doubt" : "");
      EXPECT_EQ(failure.node(), "redis://one");
    }
    return names;
  }
  [[nodiscard]] std::string why() const { return steps_.why ? steps_.why->message() : ""; }

  LinkMachine::Steps& fresh() {
    steps_ = {};
    return steps_;
  }

  TimePoint now_ = kBegin;
  std::optional<LinkMachine> machine_{std::in_place, plan(), 1};
  LinkMachine::Steps steps_;
  std::string told_;
};

// Down.

TEST_F(LinkMachines, StayDownAsLongAsNobodyWantsThem) {
  advance();
  EXPECT_FALSE(steps_.open);
  EXPECT_EQ(state(), State::down);
  EXPECT_EQ(machine_->next(false), TimePoint::max());
}

TEST_F(LinkMachines, ConnectForARequest) {
  add("a");
  EXPECT_LE(machine_->next(false), now_);
  advance();
  EXPECT_TRUE(steps_.open);
  EXPECT_EQ(state(), State::connecting);
  EXPECT_EQ(machine_->connection(), 1U);
}

TEST_F(LinkMachines, ConnectWithoutOneIfTheyAreToBeKeptOpen) {
  advance(true);
  EXPECT_TRUE(steps_.open);
}

TEST_F(LinkMachines, DoNotConnectBeforeTheyKnowWhereTo) {
  auto nowhere = plan();
  nowhere.endpoint = {};
  make(nowhere);
  add("a", now_ + 1s);
  advance();
  EXPECT_FALSE(steps_.open);
  machine_->redirect({.host = "one"}, now_, fresh());
  advance();
  EXPECT_TRUE(steps_.open);
  EXPECT_EQ(machine_->endpoint().host, "one");
}

TEST_F(LinkMachines, GiveUpWhatWaitedPastItsDeadlineAndSayWhyThereIsNoConnection) {
  advance(true);
  fails();
  add("a", now_ + 1ms);
  add("b", now_ + 1h);
  EXPECT_LE(machine_->next(false), now_ + 1ms);
  now_ += 1ms;
  advance();
  EXPECT_EQ(over(), "a");
  EXPECT_EQ(why(), "no connection in time: gone");
  EXPECT_TRUE(machine_->has_requests());
}

TEST_F(LinkMachines, GiveUpWhatWaitsWhenTheyAreRefused) {
  add("a");
  add("b");
  machine_->refuse(Error(Errc::refused, "no way"), fresh());
  EXPECT_EQ(over(), "a, b");
  EXPECT_EQ(why(), "no way");
  EXPECT_FALSE(machine_->has_requests());
}

TEST_F(LinkMachines, AreNotRefusedWhileThereIsAStream) {
  add("a");
  advance();
  machine_->refuse(Error(Errc::refused, "no way"), fresh());
  EXPECT_EQ(over(), "");
  EXPECT_TRUE(machine_->has_requests());
}

TEST_F(LinkMachines, MakeNoPauseOnTheWayToAnotherServer) {
  advance(true);
  fails();
  EXPECT_GT(pause(), 0ms);
  machine_->redirect({.host = "two"}, now_, fresh());
  EXPECT_FALSE(steps_.close);
  EXPECT_EQ(pause(), 0ms);
  advance(true);
  EXPECT_TRUE(steps_.open);
}

TEST_F(LinkMachines, ReconnectWithoutAConnectionIsNothing) {
  advance(true);
  fails();
  const auto before = pause();
  machine_->reconnect(now_, fresh());
  EXPECT_FALSE(steps_.close);
  EXPECT_EQ(pause(), before);
}

// Connecting.

TEST_F(LinkMachines, GreetFirstAndSendNothingElse) {
  add("a;");
  advance();
  EXPECT_EQ(steps_.bytes, "");
  opened();
  EXPECT_EQ(steps_.bytes, "INFO;RUN;");
  EXPECT_EQ(state(), State::greeting);
  advance();
  EXPECT_EQ(steps_.bytes, "");
}

TEST_F(LinkMachines, GiveUpConnectingInTime) {
  add("a");
  advance();
  EXPECT_EQ(machine_->next(false), now_ + 3s);
  now_ += 3s;
  advance();
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(why(), "no connection within its time");
  EXPECT_EQ(over(), "a");
}

TEST_F(LinkMachines, AskWhetherASilentPortSpeaksTls) {
  auto secure = plan();
  secure.access.tls = std::make_shared<const Tls>(Tls::Files{});
  make(secure);
  advance(true);
  now_ += 3s;
  advance(true);
  EXPECT_EQ(why(), "no connection within its time; does this port speak TLS?");
}

TEST_F(LinkMachines, GoElsewhereWhileTheyConnect) {
  add("a");
  advance();
  machine_->redirect({.host = "two"}, now_, fresh());
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(over(), "a");
  EXPECT_EQ(pause(), 0ms);
}

// Greeting.

TEST_F(LinkMachines, AreOpenWithTheLastReplyToTheGreetings) {
  add("a;");
  connect();
  hears("7");
  EXPECT_FALSE(steps_.greeted);
  advance();
  EXPECT_EQ(steps_.bytes, "");
  hears("run");
  EXPECT_TRUE(steps_.greeted);
  EXPECT_EQ(state(), State::open);
  advance();
  EXPECT_EQ(steps_.bytes, "a;");
}

TEST_F(LinkMachines, GiveUpAGreetingThatIsNotAnswered) {
  connect();
  now_ += 3s - 1ns;
  advance();
  EXPECT_FALSE(steps_.close);
  now_ += 1ns;
  advance();
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(why(), "no connection within its time");
}

TEST_F(LinkMachines, GoOnIfAGreetingMayFail) {
  connect();
  hears_error("ERR unknown subcommand");
  hears_error("ERR unknown command");
  EXPECT_EQ(state(), State::open);
}

TEST_F(LinkMachines, EndWithAGreetingThatMustNotFail) {
  auto strict = plan();
  strict.greetings[1].must = true;
  make(strict);
  add("a");
  connect();
  hears("7");
  hears_error("NOPERM no");
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(steps_.why->errc(), Errc::refused);
  EXPECT_EQ(over(), "a");
}

TEST_F(LinkMachines, EndWithAnyGreetingThatWantsAPassword) {
  connect();
  hears_error("NOAUTH Authentication required.");
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(steps_.why->errc(), Errc::refused);
}

TEST_F(LinkMachines, EndWithAGreetingWhoseCheckSaysSo) {
  auto checked = plan();
  checked.greetings[1].check = [](const redisReply& reply) -> std::optional<Error> {
    if (text(reply) == "slave") return Error(Errc::unreachable, "a replica");
    return std::nullopt;
  };
  make(checked);
  connect();
  hears("7");
  hears("slave");
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(why(), "a replica");
}

TEST_F(LinkMachines, DoNotOpenAsLongAsTheServerCantSayHowToEndThem) {
  connect();
  hears_error("BUSY somebody's script");
  EXPECT_TRUE(steps_.close);
  EXPECT_TRUE(steps_.why->retryable());
}

TEST_F(LinkMachines, HideThePasswordInWhyTheyFailed) {
  auto secret = plan();
  secret.access.password = "hunter22";
  make(secret);
  advance(true);
  machine_->failed(Error(Errc::unreachable, "no host hunter22"), now_, fresh());
  EXPECT_EQ(why(), "no host ***");
}

TEST_F(LinkMachines, GreetAnewWithWhatWasSetMeanwhile) {
  open();
  machine_->set_greetings({{.bytes = "HELLO;"}});
  machine_->reconnect(now_, fresh());
  connect();
  EXPECT_EQ(steps_.bytes, "HELLO;");
}

// Open.

TEST_F(LinkMachines, AnswerRequestsInTheirOrder) {
  add("a;");
  add("b;");
  open();
  EXPECT_EQ(steps_.bytes, "a;b;");
  add("c;");
  hears("1");
  EXPECT_EQ(answered(), "a;");
  advance();
  EXPECT_EQ(steps_.bytes, "c;");
  hears_error("ERR no");
  EXPECT_EQ(answered(), "b;");
  hears("3");
  EXPECT_EQ(answered(), "c;");
  EXPECT_FALSE(machine_->has_requests());
}

TEST_F(LinkMachines, AnswerARequestWithTheLastOfItsReplies) {
  add("asking;a;", TimePoint::max(), 2);
  add("b;");
  open();
  hears("OK");
  EXPECT_EQ(answered(), "");
  hears("1");
  EXPECT_EQ(answered(), "asking;a;");
  hears("2");
  EXPECT_EQ(answered(), "b;");
}

TEST_F(LinkMachines, StampWhatIsSentWithTheRunOfTheServer) {
  machine_->add({.bytes = "a 000\r\n", .stamped = true});
  machine_->add({.bytes = "b 000\r\n"});
  open();
  EXPECT_EQ(steps_.bytes, "a run\r\nb 000\r\n");
}

TEST_F(LinkMachines, DoNotStampWithTheRunOfTheConnectionBefore) {
  open();
  fails();
  machine_->set_greetings({{.bytes = "HELLO;"}});
  machine_->add({.bytes = "a 000\r\n", .stamped = true});
  connect();
  hears("OK");
  advance();
  EXPECT_EQ(steps_.bytes, "a 000\r\n");
}

TEST_F(LinkMachines, EndWhenTheServerSaysSomethingUnasked) {
  open();
  hears("late");
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(why(), "the server said something unasked");
}

TEST_F(LinkMachines, TakeItForAMessageIfTheyExpectThem) {
  auto subscriber = plan();
  subscriber.messages = true;
  make(subscriber);
  open();
  hears("your turn");
  EXPECT_TRUE(steps_.message);
  EXPECT_EQ(state(), State::open);
}

TEST_F(LinkMachines, EndWhenTheOldestRequestIsNotAnsweredInTime) {
  add("a;");
  open();
  now_ += 4s;
  add("b;");
  advance();
  EXPECT_EQ(machine_->next(false), now_ + 1s);
  now_ += 1s;
  add("c;");
  advance();
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(steps_.bytes, "");
  EXPECT_EQ(why(), "the server does not answer");
  EXPECT_EQ(over(), "a; in doubt, b; in doubt, c;");
}

TEST_F(LinkMachines, LetWhatWasSentOutliveItsDeadline) {
  add("a;", now_ + 1s);
  open();
  now_ += 1s;
  advance();
  EXPECT_EQ(over(), "");
  EXPECT_FALSE(steps_.close);
  hears("1");
  EXPECT_EQ(answered(), "a;");
}

TEST_F(LinkMachines, DoNotSendWhatIsPastItsDeadline) {
  open();
  add("a;", now_);
  add("b;");
  advance();
  EXPECT_EQ(over(), "a;");
  EXPECT_EQ(steps_.bytes, "b;");
}

// All but down.

TEST_F(LinkMachines, FailWhatWasSentAsInDoubtAndTheRestAsNotSent) {
  add("a;");
  add("b;");
  open();
  add("c;");
  fails();
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(over(), "a; in doubt, b; in doubt, c;");
  EXPECT_EQ(why(), "gone");
  EXPECT_FALSE(machine_->has_requests());
}

TEST_F(LinkMachines, SendNothingTwice) {
  add("a;");
  open();
  fails();
  add("b;");
  connect();
  EXPECT_EQ(steps_.bytes, "INFO;RUN;END 7;");
  hears("8");
  hears("run");
  hears("OK");
  advance();
  EXPECT_EQ(steps_.bytes, "b;");
  hears("1");
  EXPECT_EQ(answered(), "b;");
}

TEST_F(LinkMachines, EndTheConnectionBeforeIfItIsInDoubt) {
  add("a;");
  open();
  fails();
  add("b;");
  connect();
  EXPECT_EQ(steps_.bytes, "INFO;RUN;END 7;");
  hears("8");
  hears("run");
  EXPECT_EQ(state(), State::greeting) << "it may still be there";
  advance();
  EXPECT_EQ(steps_.bytes, "");
  hears_error("ERR No such client ID");
  EXPECT_TRUE(steps_.greeted);
  advance();
  EXPECT_EQ(steps_.bytes, "b;");
}

TEST_F(LinkMachines, DoNotEndOneWithoutDoubt) {
  add("a;");
  open();
  hears("1");
  fails();
  connect();
  EXPECT_EQ(steps_.bytes, "INFO;RUN;");
}

TEST_F(LinkMachines, EndItWithTheConnectionAfterTheNextIfTheNextOneFailed) {
  add("a;");
  open();
  fails();
  connect();
  hears("8");
  fails();
  connect();
  EXPECT_EQ(steps_.bytes, "INFO;RUN;END 7;");
  hears("9");
  hears("run");
  hears("OK");
  EXPECT_EQ(state(), State::open);
  fails();
  connect();
  EXPECT_EQ(steps_.bytes, "INFO;RUN;") << "it was ended";
}

TEST_F(LinkMachines, DoNotOpenAsLongAsTheServerCantEndTheConnectionBefore) {
  add("a;");
  open();
  fails();
  connect();
  hears("8");
  hears("run");
  hears_error("BUSY somebody's script");
  EXPECT_TRUE(steps_.close);
  connect();
  EXPECT_EQ(steps_.bytes, "INFO;RUN;END 7;");
}

TEST_F(LinkMachines, BeginAnewWhenTheyAreToldTo) {
  add("a;");
  open();
  machine_->reconnect(now_, fresh());
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(over(), "a; in doubt");
  EXPECT_GT(pause(), 0ms);
}

TEST_F(LinkMachines, LeaveTheServerForAnotherOneAtOnce) {
  add("a;");
  open();
  machine_->redirect({.host = "one", .port = "1"}, now_, fresh());
  EXPECT_FALSE(steps_.close) << "it is the same";
  machine_->redirect({.host = "two"}, now_, fresh());
  EXPECT_TRUE(steps_.close);
  EXPECT_EQ(over(), "a; in doubt");
  EXPECT_EQ(pause(), 0ms);
  advance(true);
  EXPECT_TRUE(steps_.open);
  EXPECT_EQ(machine_->connection(), 2U);
}

TEST_F(LinkMachines, PauseTwiceAsLongEachTimeUpToASecond) {
  auto most = 10ms;
  for (int i = 0; i < 12; ++i) {
    now_ = std::max(now_, machine_->next(true));
    advance(true);
    ASSERT_TRUE(steps_.open);
    fails();
    EXPECT_GE(pause(), most / 2);
    EXPECT_LE(pause(), most);
    advance(true);
    EXPECT_FALSE(steps_.open);
    most = std::min(most * 2, 1000ms);
  }
}

TEST_F(LinkMachines, PauseForDifferentTimes) {
  std::set<Duration> pauses;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    make(plan(), seed * 1'000'003);
    advance(true);
    fails();
    pauses.insert(pause());
  }
  EXPECT_GT(pauses.size(), 15U);
  EXPECT_GT(*pauses.rbegin() - *pauses.begin(), 2ms);
}

TEST_F(LinkMachines, PauseShortlyAgainOnceTheyWereGreeted) {
  for (int i = 0; i < 6; ++i) {
    connect();
    fails();
  }
  EXPECT_GT(pause(), 100ms) << "a stream alone is no connection";
  open();
  fails();
  EXPECT_LE(pause(), 10ms);
}

TEST_F(LinkMachines, GiveAwayAllRequestsWhenTheyAreAbandoned) {
  add("a;");
  open();
  add("b;");
  auto all = machine_->abandon();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(name_of(all[0].request) + name_of(all[1].request), "a;b;");
  EXPECT_FALSE(machine_->has_requests());
  EXPECT_FALSE(machine_->expects_answer());
}

TEST_F(LinkMachines, FailOnceOnly) {
  advance(true);
  fails();
  add("a;");
  fails();
  EXPECT_FALSE(steps_.close);
  EXPECT_EQ(over(), "");
  EXPECT_TRUE(machine_->has_requests());
}

// What has expired and was not told yet, for want of memory, is still there when the stream fails.
TEST_F(LinkMachines, MixUpNoRequestsThatWereNotToldYet) {
  add("a;");
  open();
  add("b;", now_);
  advance();
  machine_->failed(Error(Errc::unreachable, "gone"), now_, steps_);
  EXPECT_EQ(over(), "a; in doubt");
  advance();
  EXPECT_EQ(over(), "b;");
}

}  // namespace
}  // namespace interlock::redis
