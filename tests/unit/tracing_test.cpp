// Row 3.7: the span DistributedLock.Acquire, by OTLP over HTTP.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "eventually.hpp"
#include "interlock/interlock.hpp"
#include "interlock/tracing.hpp"
#include "observe/tracing/traceparent.hpp"
#include "servers/http_server.hpp"
#include "servers/process.hpp"
#include "waiting.hpp"

namespace interlock {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing_support::eventually;
using testing_support::kPatience;
using testing_support::Waiting;

constexpr const char* kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

json attributes(const json& of) {
  json result = json::object();
  for (const auto& each : of["attributes"]) {
    const auto& value = each["value"];
    result[each["key"].get<std::string>()] =
        value.contains("intValue") ? json(std::stoll(value["intValue"].get<std::string>()))
                                   : value.begin().value();
  }
  return result;
}

struct TracingTest : testing::Test {
  servers::HttpServer collector;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  MemoryStore store{clock};
  Client other{store.open(), {.clock = clock}};

  [[nodiscard]] std::shared_ptr<Tracing> tracing(TracingOptions options = {}) const {
    options.endpoint = collector.url();
    return std::make_shared<Tracing>(std::move(options));
  }
  [[nodiscard]] Client client(std::shared_ptr<Observer> observer) const {
    return Client(store.open(), {.observer = std::move(observer), .clock = clock});
  }
  std::vector<json> spans() {
    std::vector<json> found;
    for (const auto& request : collector.requests()) {
      const auto message = json::parse(request.body);
      for (const auto& resource : message["resourceSpans"]) {
        for (const auto& scope : resource["scopeSpans"]) {
          for (const auto& span : scope["spans"]) found.push_back(span);
        }
      }
    }
    return found;
  }
};

TEST_F(TracingTest, AnAcquisitionIsASpanWithTheDocumentedAttributes) {
  const auto traces = tracing({.service = "billing"});
  const auto locks = client(traces);
  { auto lease = Mutex(locks, "kerchunk/17", {.ttl = 10min}).try_acquire_for(5min); }
  ASSERT_TRUE(traces->flush(kPatience));
  const auto requests = collector.requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_TRUE(requests[0].head.starts_with("POST /v1/traces HTTP/1.1\r\n")) << requests[0].head;
  EXPECT_NE(requests[0].head.find("Content-Type: application/json\r\n"), std::string::npos);
  const auto message = json::parse(requests[0].body);
  EXPECT_EQ(attributes(message["resourceSpans"][0]["resource"])["service.name"], "billing");
  ASSERT_EQ(spans().size(), 1U);
  const auto span = spans()[0];
  EXPECT_EQ(span["name"], "DistributedLock.Acquire");
  EXPECT_EQ(span["kind"], 3);
  EXPECT_EQ(span["traceId"].get<std::string>().size(), 32U);
  EXPECT_EQ(span["spanId"].get<std::string>().size(), 16U);
  EXPECT_FALSE(span.contains("parentSpanId"));
  EXPECT_FALSE(span.contains("events")) << "it did not wait";
  EXPECT_FALSE(span.contains("status"));
  EXPECT_LE(span["startTimeUnixNano"].get<std::string>(),
            span["endTimeUnixNano"].get<std::string>());
  EXPECT_EQ(attributes(span), json({{"lock.key", "kerchunk/17"},
                                    {"lock.timeout_ms", 300'000},
                                    {"lock.expiry_ms", 600'000},
                                    {"lock.acquired", true},
                                    {"lock.wait_time_ms", 0},
                                    {"lock.outcome", "granted"},
                                    {"lock.store", "memory"}}));
  EXPECT_EQ(traces->sent(), 1U);
  EXPECT_EQ(traces->dropped(), 0U);
  EXPECT_EQ(traces->last_error(), "");
}

TEST_F(TracingTest, WaitingIsAnEventOfTheSpanAndATimeoutIsNotAcquired) {
  auto held = Mutex(other, "k", {.ttl = 1h}).acquire();
  const auto traces = tracing();
  const auto locks = client(traces);
  Waiting waiting(Mutex(locks, "k"), 5s);
  ASSERT_TRUE(eventually(
      [&] { return other.inspect({.resources = {"k"}}).resources.at(0).waiters.size() == 1; }));
  ASSERT_TRUE(eventually([&] {
    clock->advance(1s);
    return waiting.over();
  }));
  ASSERT_TRUE(traces->flush(kPatience));
  ASSERT_EQ(spans().size(), 1U);
  const auto span = spans()[0];
  ASSERT_EQ(span["events"].size(), 1U);
  EXPECT_EQ(span["events"][0]["name"], "lock.queued");
  EXPECT_EQ(attributes(span["events"][0])["lock.ahead"], 0);
  EXPECT_EQ(attributes(span)["lock.acquired"], false);
  EXPECT_EQ(attributes(span)["lock.outcome"], "timed_out");
  EXPECT_GE(attributes(span)["lock.wait_time_ms"], 5000);
  EXPECT_FALSE(span.contains("status")) << "nothing is broken";
}

TEST_F(TracingTest, AStoreThatFailsMakesTheSpanAnError) {
  auto held = Mutex(other, "k").acquire();
  const auto traces = tracing();
  const auto locks = client(traces);
  EXPECT_THROW((void)Semaphore(locks, "k", 3).acquire(), Error);
  ASSERT_TRUE(traces->flush(kPatience));
  ASSERT_EQ(spans().size(), 1U);
  EXPECT_EQ(spans()[0]["status"]["code"], 2);
  EXPECT_FALSE(spans()[0]["status"]["message"].get<std::string>().empty());
  EXPECT_EQ(attributes(spans()[0])["lock.outcome"], "wrong_kind");
  EXPECT_FALSE(attributes(spans()[0]).contains("lock.timeout_ms")) << "there was no limit";
}

TEST_F(TracingTest, TheCallersTraceIsTheParentAlsoOfAnAsynchronousAcquisition) {
  static thread_local std::string current;
  const auto traces = tracing({.parent = [] { return current; }});
  const auto locks = client(traces);
  current = kParent;
  { auto lease = Mutex(locks, "a").acquire(); }
  std::promise<Attempt> done;
  Mutex(locks, "b").acquire(Wait::once(), [&](Attempt attempt) {
    done.set_value(std::move(attempt));
  });
  EXPECT_TRUE(done.get_future().get());
  current = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
  { auto lease = Mutex(locks, "not sampled").acquire(); }
  current = "nonsense";
  { auto lease = Mutex(locks, "c").acquire(); }
  ASSERT_TRUE(traces->flush(kPatience));
  std::set<std::string> keys;
  for (const auto& span : spans()) {
    const auto key = attributes(span)["lock.key"].get<std::string>();
    keys.insert(key);
    if (key == "c") {
      EXPECT_FALSE(span.contains("parentSpanId"));
    } else {
      EXPECT_EQ(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
      EXPECT_EQ(span["parentSpanId"], "b7ad6b7169203331");
    }
  }
  EXPECT_EQ(keys, (std::set<std::string>{"a", "b", "c"}));
}

TEST_F(TracingTest, SpansTravelTogether) {
  const auto traces = tracing({.interval = 1h});
  const auto locks = client(traces);
  for (int i = 0; i < 1000; ++i) auto lease = Mutex(locks, "k").acquire();
  ASSERT_TRUE(traces->flush(kPatience));
  EXPECT_LE(collector.requests().size(), 4U);
  std::set<std::string> ids;
  for (const auto& span : spans()) ids.insert(span["spanId"]);
  EXPECT_EQ(ids.size(), 1000U);
  EXPECT_EQ(traces->sent(), 1000U);
}

TEST_F(TracingTest, ACollectorThatHangsHoldsUpNoLockAndTheQueueIsBounded) {
  collector.answer(0);
  const auto traces = tracing({.queue = 100, .interval = 1ms, .timeout = 1h, .linger = 100ms});
  const auto locks = client(traces);
  { auto lease = Mutex(locks, "first").acquire(); }
  ASSERT_TRUE(eventually([&] { return collector.requests().size() == 1; }));
  // If one of these waited for the collector, it would be for an hour.
  for (int i = 0; i < 500; ++i) auto lease = Mutex(locks, "k").acquire();
  EXPECT_EQ(traces->dropped(), 401U);
  EXPECT_EQ(traces->sent(), 0U);
  EXPECT_FALSE(traces->flush(1ms));
  // And the destructor, at the end of this test, does not wait for an hour either.
}

TEST_F(TracingTest, ABusyCollectorIsAskedAgainAndOneThatSaysNoIsNot) {
  const auto traces = tracing({.interval = 1ms});
  const auto locks = client(traces);
  collector.answer(503);
  { auto lease = Mutex(locks, "k").acquire(); }
  ASSERT_TRUE(eventually([&] { return collector.requests().size() >= 2; }));
  collector.answer(200);
  ASSERT_TRUE(traces->flush(kPatience));
  EXPECT_EQ(traces->sent(), 1U);
  EXPECT_EQ(traces->dropped(), 0U);
  collector.answer(400);
  { auto lease = Mutex(locks, "k").acquire(); }
  ASSERT_TRUE(traces->flush(kPatience));
  EXPECT_EQ(traces->dropped(), 1U);
  EXPECT_NE(traces->last_error().find("answered 400"), std::string::npos) << traces->last_error();
  collector.answer(200, R"({"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}})");
  { auto lease = Mutex(locks, "k").acquire(); }
  ASSERT_TRUE(traces->flush(kPatience));
  EXPECT_EQ(traces->dropped(), 2U) << "it took the message, and not the span";
}

TEST_F(TracingTest, WhatIsLeftIsSentWhenItEnds) {
  {
    const auto locks = client(tracing({.interval = 1h, .linger = kPatience}));
    auto lease = Mutex(locks, "k").acquire();
  }
  EXPECT_EQ(spans().size(), 1U);
}

TEST_F(TracingTest, WhatPausesBeforeAnotherTryGetsOneWhenItEnds) {
  auto traces = tracing({.interval = 1ms, .linger = kPatience});
  collector.answer(503);
  { auto lease = Mutex(client(traces), "k").acquire(); }
  // The third pause is two seconds: it ends in the middle of one.
  ASSERT_TRUE(eventually([&] { return collector.requests().size() >= 3; }));
  collector.answer(200);
  const auto before = collector.requests().size();
  traces.reset();
  EXPECT_EQ(collector.requests().size(), before + 1);
}

TEST_F(TracingTest, AFailureIsToldOnce) {
  std::atomic<int> told{0};
  const auto traces = tracing({.interval = 1ms, .on_failure = [&](const std::string&) { ++told; }});
  const auto locks = client(traces);
  collector.answer(400);
  for (int i = 0; i < 2; ++i) {
    { auto lease = Mutex(locks, "k").acquire(); }
    ASSERT_TRUE(traces->flush(kPatience));
  }
  EXPECT_EQ(told, 1);
}

TEST_F(TracingTest, IsSwitchedOffAsAllOfOpenTelemetry) {
  for (const auto& [name, value] :
       {std::pair("OTEL_SDK_DISABLED", "TRUE"), std::pair("OTEL_TRACES_EXPORTER", "none")}) {
    ::setenv(name, value, 1);
    const auto traces = tracing();
    ::unsetenv(name);
    { auto lease = Mutex(client(traces), "k").acquire(); }
    EXPECT_TRUE(traces->flush(kPatience));
  }
  EXPECT_TRUE(collector.requests().empty());
}

TEST_F(TracingTest, ACollectorThatIsNotThereCostsNothingButTheSpans) {
  const auto nobody = "http://user:secret@127.0.0.1:" + std::to_string(servers::free_port());
  const auto traces = std::make_shared<Tracing>(
      TracingOptions{.endpoint = nobody, .interval = 1ms, .linger = 10ms});
  const auto locks = client(traces);
  { auto lease = Mutex(locks, "k").acquire(); }
  ASSERT_TRUE(eventually([&] { return !traces->last_error().empty(); }));
  EXPECT_NE(traces->last_error().find("did not answer"), std::string::npos) << traces->last_error();
  EXPECT_EQ(traces->last_error().find("secret"), std::string::npos) << traces->last_error();
}

// Whatever words there are in an error: those of a header are secret.
TEST_F(TracingTest, AHeaderIsNotShown) {
  const auto nobody = "http://127.0.0.1:" + std::to_string(servers::free_port());
  for (const std::string value : {"Failed to connect", "Bearer Failed to connect"}) {
    const auto traces =
        std::make_shared<Tracing>(TracingOptions{.endpoint = nobody,
                                                 .headers = {{"authorization", value}},
                                                 .interval = 1ms,
                                                 .linger = 10ms});
    { auto lease = Mutex(client(traces), "k").acquire(); }
    ASSERT_TRUE(eventually([&] { return !traces->last_error().empty(); }));
    EXPECT_NE(traces->last_error().find("did not answer: ***"), std::string::npos)
        << traces->last_error();
  }
}

TEST_F(TracingTest, TheEnvironmentSaysWhereToAndWithWhichHeaders) {
  ::setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url().c_str(), 1);
  ::setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x-team=locks,nonsense", 1);
  ::setenv("OTEL_SERVICE_NAME", "from-environment", 1);
  const auto traces = std::make_shared<Tracing>(TracingOptions{.headers = {{"x-mine", "1"}}});
  ::unsetenv("OTEL_EXPORTER_OTLP_ENDPOINT");
  ::unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
  ::unsetenv("OTEL_SERVICE_NAME");
  const auto locks = client(traces);
  { auto lease = Mutex(locks, "k").acquire(); }
  ASSERT_TRUE(traces->flush(kPatience));
  ASSERT_EQ(collector.requests().size(), 1U);
  const auto head = collector.requests()[0].head;
  EXPECT_TRUE(head.starts_with("POST /v1/traces ")) << head;
  for (const char* line : {"\r\napi-key: a b\r\n", "\r\nx-team: locks\r\n", "\r\nx-mine: 1\r\n"}) {
    EXPECT_NE(head.find(line), std::string::npos) << head;
  }
  EXPECT_NE(collector.requests()[0].body.find("from-environment"), std::string::npos);
}

TEST_F(TracingTest, AForkedChildEndsWithoutTheThreadItDoesNotHave) {
  auto traces = tracing();
  const pid_t child = ::fork();
  if (child == 0) {
    traces.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_TRUE(eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
  EXPECT_EQ(status, 0);
}

TEST(Tracing, RefusesAnEndpointThatIsNone) {
  for (const char* endpoint : {"localhost:4318", "ftp://host", "http://", "nonsense"}) {
    EXPECT_THROW(Tracing({.endpoint = endpoint}), Error) << endpoint;
  }
}

TEST(TraceParent, IsReadAsTheStandardSays) {
  using observe::parse_traceparent;
  const auto parent = parse_traceparent(kParent);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(parent->span_id, "b7ad6b7169203331");
  EXPECT_TRUE(parent->sampled);
  const std::string ids = "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-";
  EXPECT_FALSE(parse_traceparent("00" + ids + "00")->sampled);
  EXPECT_TRUE(parse_traceparent("00" + ids + "ff")->sampled);
  EXPECT_TRUE(parse_traceparent("cc" + ids + "01-what-the-future-will-be-like"));
  for (const auto& bad :
       {std::string(), "ff" + ids + "01", "00" + ids + "0", "00" + ids + "01-more",
        "cc" + ids + "01.more", "00" + ids + "0x", "0x" + ids + "01",
        std::string("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
        std::string("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"),
        std::string("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01")}) {
    EXPECT_FALSE(parse_traceparent(bad)) << bad;
  }
}

}  // namespace
}  // namespace interlock
