#include "observe/tracing/exporter.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/quiet_thread.hpp"
#include "core/text.hpp"
#include "interlock/backend.hpp"

namespace interlock {

namespace {

constexpr std::size_t kBatch = 512;
constexpr int kTries = 4;
constexpr auto kFirstPause = std::chrono::milliseconds(500);

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string either(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

std::string address(const std::string& endpoint) {
  if (endpoint.empty()) {
    if (auto traces = environment("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); !traces.empty()) {
      return traces;
    }
  }
  auto base =
      either(endpoint, either(environment("OTEL_EXPORTER_OTLP_ENDPOINT"), "http://localhost:4318"));
  while (base.ends_with('/')) base.pop_back();
  return base + "/v1/traces";
}

// Where it goes, for people: no user, no password, no query.
std::string show(const std::string& address) {
  const auto url = Url::parse(address);
  if ((url.scheme != "http" && url.scheme != "https") || url.authority.empty()) {
    throw Error(Errc::invalid,
                "traces go to an http: or https: URL such as http://localhost:4318, not to " +
                    printable(url.scheme + ":", 64));
  }
  return url.scheme + "://" + url.authority + url.path;
}

// OTEL_EXPORTER_OTLP_HEADERS: key=value,key=value, percent-encoded.
std::map<std::string, std::string> with_environment(std::map<std::string, std::string> headers) {
  const auto text = environment("OTEL_EXPORTER_OTLP_HEADERS");
  for (std::string_view rest = text; !rest.empty();) {
    const auto pair = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    auto name = pair.substr(0, equals);
    while (name.starts_with(' ')) name.remove_prefix(1);
    if (const auto value = percent_decode(pair.substr(equals + 1))) {
      headers.emplace(std::string(name), *value);
    }
  }
  std::erase_if(headers, [](const auto& header) {
    return !is_plain_utf8(header.first) || !is_plain_utf8(header.second);
  });
  return headers;
}

// What stands in a header may let others in: all of it, or what follows a word like Bearer.
core::Secrets secrets_of(const std::string& address,
                         const std::map<std::string, std::string>& headers) {
  core::Secrets secrets{Url::parse(address).password};
  for (const auto& [name, value] : headers) {
    secrets.add(value);
    if (const auto space = value.find(' '); space != std::string::npos)
      secrets.add(std::string_view(value).substr(space + 1));
  }
  return secrets;
}

// curl takes 0 for no limit, and the clock has an end.
Duration within_a_day(Duration time) {
  return std::clamp<Duration>(time, std::chrono::milliseconds(1), std::chrono::hours(24));
}

bool worth_another_try(const observe::HttpPost::Result& result) {
  return result.status == 0 || result.status == 429 || result.status == 502 ||
         result.status == 503 || result.status == 504;
}

}  // namespace

Tracing::Exporter::Exporter(const TracingOptions& options)
    : service_(
          either(options.service, either(environment("OTEL_SERVICE_NAME"), "unknown_service"))),
      most_(options.queue),
      interval_(within_a_day(options.interval)),
      timeout_(within_a_day(options.timeout)),
      linger_(within_a_day(options.linger)),
      on_failure_(options.on_failure),
      shown_(show(address(options.endpoint))),
      headers_(with_environment(options.headers)),
      secrets_(secrets_of(address(options.endpoint), headers_)),
      http_(address(options.endpoint), headers_),
      thread_(core::quiet_thread([this] { run(); })) {}

Tracing::Exporter::~Exporter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    stop_by_ = Steady::now() + linger_;
  }
  changed_.notify_all();
  thread_.join();
}

void Tracing::Exporter::add(observe::Span span) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() + under_way_ >= most_) {
      ++dropped_;
      return;
    }
    queue_.push_back(std::move(span));
    if (queue_.size() != 1 && queue_.size() != kBatch) return;  // it knows
  }
  changed_.notify_all();
}

void Tracing::Exporter::drop() {
  const std::lock_guard lock(mutex_);
  ++dropped_;
}

bool Tracing::Exporter::flush(Duration within) {
  std::unique_lock lock(mutex_);
  hurry_ = !queue_.empty() || under_way_ > 0;
  changed_.notify_all();
  return changed_.wait_for(lock, within, [this] { return queue_.empty() && under_way_ == 0; });
}

std::uint64_t Tracing::Exporter::sent() const {
  const std::lock_guard lock(mutex_);
  return sent_;
}

std::uint64_t Tracing::Exporter::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::string Tracing::Exporter::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

bool Tracing::Exporter::overdue() const {
  const std::lock_guard lock(mutex_);
  return Steady::now() >= stop_by_;
}

void Tracing::Exporter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    // The first one waits for others.
    changed_.wait_for(lock, interval_,
                      [this] { return stop_ || hurry_ || queue_.size() >= kBatch; });
    std::vector<observe::Span> batch;
    for (; !queue_.empty() && batch.size() < kBatch; queue_.pop_front()) {
      batch.push_back(std::move(queue_.front()));
    }
    under_way_ = batch.size();
    bool last = stop_;
    lock.unlock();
    for (int tries = 1; send(batch); ++tries) {
      if (last || tries == kTries) {
        finish(0, batch.size(), {});
        break;
      }
      lock.lock();
      const auto pause = kFirstPause * (1 << (tries - 1));
      last = changed_.wait_for(lock, pause, [this] { return stop_; });
      lock.unlock();
    }
    lock.lock();
    under_way_ = 0;
    if (queue_.empty()) hurry_ = false;
    changed_.notify_all();
  }
}

bool Tracing::Exporter::send(const std::vector<observe::Span>& batch) {
  auto timeout = timeout_;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) timeout = std::min<Duration>(timeout, stop_by_ - Steady::now());
  }
  observe::HttpPost::Result result{.status = 0, .body = {}, .error = "there was no time left"};
  try {
    if (timeout > Duration::zero()) {
      result = http_.send(observe::to_otlp(batch, service_), timeout, [this] { return overdue(); });
    }
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  if (result.status >= 200 && result.status < 300) {
    const auto rejected =
        std::min<std::uint64_t>(observe::rejected_spans(result.body), batch.size());
    finish(batch.size() - rejected, rejected,
           rejected == 0 ? "" : shown_ + " left out " + std::to_string(rejected) + " spans");
    return false;
  }
  const auto why = result.status != 0
                       ? "answered " + std::to_string(result.status)
                       : "did not answer: " + printable(secrets_.hide(result.error), 256);
  const bool again = worth_another_try(result);
  finish(0, again ? 0 : batch.size(), shown_ + " " + why);
  return again;
}

// An empty error after a failure leaves what was said before.
void Tracing::Exporter::finish(std::uint64_t taken, std::uint64_t dropped,
                               const std::string& error) {
  std::unique_lock lock(mutex_);
  sent_ += taken;
  dropped_ += dropped;
  if (error.empty() && dropped > 0) return;
  const bool news = last_error_.empty() && !error.empty();
  last_error_ = error;
  lock.unlock();
  if (news && on_failure_) on_failure_(error);
}

}  // namespace interlock
