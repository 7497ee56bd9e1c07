#include "interlock/tracing.hpp"

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "core/process.hpp"
#include "observe/tracing/exporter.hpp"
#include "observe/tracing/traceparent.hpp"
#include "observe/words.hpp"

namespace interlock {

using observe::Span;

namespace {

constexpr std::size_t kMostPending = 65536;
constexpr std::size_t kMostPlaces = 32;

// By the variables that all of OpenTelemetry follows.
bool switched_off() {
  const auto says = [](const char* name, std::string_view what) {
    const char* value = std::getenv(name);
    if (value == nullptr) return false;
    std::string text(value);
    for (auto& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return text == what;
  };
  return says("OTEL_SDK_DISABLED", "true") || says("OTEL_TRACES_EXPORTER", "none");
}

observe::WallTime now() { return std::chrono::system_clock::now(); }

}  // namespace

/// Acquisitions under way.
class Tracing::Pending {
 public:
  /// False: there are too many.
  bool begin(const Owner& owner, Span span) {
    const std::lock_guard lock(mutex_);
    if (spans_.size() >= kMostPending) return false;
    spans_.insert_or_assign(owner, std::move(span));
    return true;
  }

  void queued(const Owner& owner, std::uint32_t ahead) {
    const std::lock_guard lock(mutex_);
    const auto found = spans_.find(owner);
    if (found == spans_.end() || found->second.queued.size() >= kMostPlaces) return;
    found->second.queued.push_back({now(), ahead});
  }

  std::optional<Span> end(const Owner& owner) {
    const std::lock_guard lock(mutex_);
    auto node = spans_.extract(owner);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }

 private:
  std::mutex mutex_;
  std::unordered_map<Owner, Span> spans_;
};

Tracing::Tracing(const TracingOptions& options)
    : epoch_(core::fork_epoch()),
      parent_(options.parent),
      pending_(std::make_unique<Pending>()),
      exporter_(switched_off() ? nullptr : std::make_unique<Exporter>(options)) {}

Tracing::~Tracing() {
  if (epoch_ == core::fork_epoch()) return;
  // The thread stayed in the parent, and whatever it had locked stays so here.
  (void)pending_.release();
  (void)exporter_.release();
}

void Tracing::on(const Observation& seen) noexcept {
  if (epoch_ != core::fork_epoch() || !exporter_) return;
  try {
    switch (seen.event) {
      case Event::asked: {
        const auto parent = observe::parse_traceparent(parent_ ? parent_() : std::string());
        if (parent && !parent->sampled) return;
        Span span;
        span.trace_id = parent ? parent->trace_id : Owner::random().to_string();
        span.span_id = Owner::random().to_string().substr(0, 16);
        span.parent_id = parent ? parent->span_id : "";
        span.start = now();
        span.key = seen.resource;
        span.store = seen.store->name;
        span.timeout = seen.limit;
        span.expiry = seen.claim.ttl;
        if (!pending_->begin(seen.claim.owner, std::move(span))) exporter_->drop();
        break;
      }
      case Event::queued:
        pending_->queued(seen.claim.owner, seen.place);
        break;
      case Event::granted:
      case Event::timed_out:
      case Event::refused: {
        auto span = pending_->end(seen.claim.owner);
        if (!span) return;
        span->end = now();
        span->acquired = seen.event == Event::granted;
        span->waited = seen.elapsed;
        span->outcome = span->acquired || seen.error == nullptr ? to_string(seen.event)
                                                                : observe::word(seen.error->errc());
        if (seen.event == Event::refused && seen.error != nullptr) {
          span->failure = seen.error->message();
        }
        exporter_->add(std::move(*span));
        break;
      }
      default:
        break;
    }
  } catch (...) {  // a span is not worth a lock
  }
}

bool Tracing::flush(Duration within) { return !exporter_ || exporter_->flush(within); }
std::uint64_t Tracing::sent() const { return exporter_ ? exporter_->sent() : 0; }
std::uint64_t Tracing::dropped() const { return exporter_ ? exporter_->dropped() : 0; }
std::string Tracing::last_error() const { return exporter_ ? exporter_->last_error() : ""; }

}  // namespace interlock
