#include "backends/etcd/rpc.hpp"

#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "backends/etcd/elements.hpp"
#include "backends/etcd/txn.hpp"
#include "core/contain.hpp"
#include "core/process.hpp"
#include "core/quiet_thread.hpp"
#include "core/secrets.hpp"
#include "core/text.hpp"
#include "interlock/duration.hpp"

namespace interlock::etcd {

namespace {

// Limits of one message, so that a hostile server can't fill the memory.
constexpr int kMostBytes = 4 << 20;
constexpr std::size_t kMostElements = std::size_t{1} << 15U;
// gRPC looks at the length of a message when it has all of it.
constexpr std::size_t kMostMemory = std::size_t{8} << 20U;

template <Answered type, class Message>
struct Limited {
  static grpc::Status Deserialize(grpc::ByteBuffer* buffer, Message* message) {
    if (buffer->Length() > kMostElements) {
      grpc::ProtoBufferReader reader(buffer);
      if (!has_at_most(kMostElements, type, reader)) {
        buffer->Clear();
        return {grpc::StatusCode::INTERNAL, "too many elements"};
      }
    }
    return grpc::GenericDeserialize<grpc::ProtoBufferReader, Message>(buffer, message);
  }
};

}  // namespace

}  // namespace interlock::etcd

namespace grpc {

template <>
class SerializationTraits<interlock::etcd::wire::TxnResponse>
    : public interlock::etcd::Limited<interlock::etcd::Answered::txn,
                                      interlock::etcd::wire::TxnResponse> {};
template <>
class SerializationTraits<interlock::etcd::wire::WatchResponse>
    : public interlock::etcd::Limited<interlock::etcd::Answered::watch,
                                      interlock::etcd::wire::WatchResponse> {};

}  // namespace grpc

namespace interlock::etcd {

namespace {

// How long a caller that waits makes its call itself.
constexpr Duration kOwnCall = std::chrono::milliseconds(100);
constexpr Duration kTick = std::chrono::milliseconds(250);
// How often calls are looked after whose callers have left them.
constexpr Duration kSlowCalls = std::chrono::milliseconds(5);
// A member that has not answered by then is not the one to ask, if there is another.
constexpr Duration kLeastPatience = std::chrono::milliseconds(300);
// So often a call is sent once more if the connection ends beneath it.
constexpr std::size_t kReconnects = 2;
// Of what a server says, for people.
constexpr std::size_t kLongestLine = 1000;

std::chrono::system_clock::time_point wall(TimePoint time) {
  const auto left = std::min<Duration>(time - BootClock::now(), std::chrono::hours(24));
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
}

bool says(const grpc::Status& status, const char* text) {
  return status.error_message().find(text) != std::string::npos;
}

// What gRPC says of a message that is longer than it may be, or would take too much memory.
bool too_long(const grpc::Status& status) {
  return says(status, "larger than max") || says(status, "Buffers full");
}

bool wants_new_token(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         says(status, "revision of auth store is old");
}

// With other characters in a header, gRPC ends the process.
bool can_be_sent(const std::string& token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Whether there is an answer to all that was asked; of transactions, see txn.hpp.
template <class Request, class Response>
bool fits(const Request&, const Response&) {
  return true;
}

// Another member may answer. (A silent one is a matter of time.)
bool try_elsewhere(const grpc::Status& status) {
  if (too_long(status)) return true;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
      return true;
    default:
      return false;
  }
}

Failure failure(const grpc::Status& status, const std::string& node, bool maybe_done,
                const core::Secrets& secrets) {
  const auto said = printable(secrets.hide(status.error_message()), kLongestLine);
  const auto make = [&](Failure::Kind kind, Errc code, const std::string& advice) {
    // Without a connection it is gRPC that speaks.
    const bool connected = status.error_code() != grpc::StatusCode::UNAVAILABLE;
    auto text = (connected ? "etcd says: " : "no connection: ") + said;
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) text = "no answer in time";
    return Failure{
        kind, Error(code, text + advice, {.resource = {}, .node = node, .maybe_held = maybe_done})};
  };
  using Kind = Failure::Kind;
  if (too_long(status))
    return make(Kind::unreachable, Errc::unreachable, "; the answer is too long: is this etcd?");
  if (says(status, "requested lease not found")) return make(Kind::no_lease, Errc::unreachable, "");
  if (says(status, "too many requests")) return make(Kind::unreachable, Errc::unreachable, "");
  if (says(status, "space exceeded"))
    return make(Kind::refused, Errc::refused,
                "; compact and defragment it, then disarm the alarm (etcdctl alarm disarm)");
  if (says(status, "user name is empty"))
    return make(Kind::refused, Errc::refused,
                "; name a user in the URL, and its password there or by password-file=");
  if (says(status, "authentication is not enabled"))
    return make(Kind::refused, Errc::refused, "; leave user and password out of the URL");
  if (says(status, "empty address list"))
    return make(
        Kind::unreachable, Errc::unreachable,
        "; TLS can't begin: check that ca=, cert= and key= are PEM files, and that key= belongs "
        "to cert=");
  if (says(status, "certificate verify failed"))
    return make(Kind::unreachable, Errc::unreachable,
                "; check ca= (who signed the server's certificate) and server-name=");
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return make(Kind::unreachable, Errc::unreachable,
                  "; is a majority of the members running and in reach?");
    case grpc::StatusCode::UNAVAILABLE:
      if (says(status, "Socket closed") || says(status, "read failed")) {
        return make(Kind::unreachable, Errc::unreachable,
                    "; does the server speak TLS (etcds://), or not (etcd://)? Does it want a "
                    "certificate of ours (cert=, key=)?");
      }
      return make(Kind::unreachable, Errc::unreachable, "");
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::ABORTED:
      return make(Kind::unreachable, Errc::unreachable, "");
    case grpc::StatusCode::PERMISSION_DENIED:
      return make(Kind::refused, Errc::refused,
                  "; the user needs the right to read and write all keys with the prefix");
    case grpc::StatusCode::UNAUTHENTICATED:
      return make(Kind::refused, Errc::refused, "; check the user and the password");
    case grpc::StatusCode::DATA_LOSS:
      return make(Kind::refused, Errc::corrupt, "");
    default:
      return make(Kind::refused, Errc::refused, "");
  }
}

// gRPC does not survive a fork: its threads and locks stay behind, and the child shares its parent's
// epoll set. Whoever was forked after the first use must not touch it, for the parent's sake, too.
void check_not_forked_since_first_use(const Settings& settings) {
  static std::atomic<std::uint64_t> first_used = 0;
  const auto now = core::fork_epoch();
  std::uint64_t used = 0;
  if (first_used.compare_exchange_strong(used, now) || used == now) return;
  throw Error(
      Errc::forked,
      "this process was forked after its parent had connected to etcd, and gRPC, by which that "
      "is done, does not survive a fork: fork before the first connection, or exec",
      {.resource = {}, .node = settings.where(), .maybe_held = false});
}

/// Something under way on the background thread.
class Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;
  virtual void done(bool ok) = 0;
};

/// Keeps gRPC initialised.
class Grpc {
 public:
  Grpc() { grpc_init(); }
  Grpc(const Grpc&) = delete;
  Grpc& operator=(const Grpc&) = delete;
  ~Grpc() { grpc_shutdown(); }
};

std::shared_ptr<grpc::Channel> open_channel(const Settings& settings, const std::string& endpoint) {
  // What GRPC_TRACE makes gRPC print has passwords in it, tokens of etcd, and owners, which release
  // locks.
  const Grpc initialised;
  grpc_tracer_set_enabled("all", 0);
  grpc::ChannelArguments arguments;
  // A connection of this client's own, which comes back soon and notices a pulled cable.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 3000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000);
  arguments.SetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, kMostBytes);
  arguments.SetResourceQuota(grpc::ResourceQuota("interlock").Resize(kMostMemory));
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  if (!settings.tls)
    return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
  if (!settings.server_name.empty()) arguments.SetSslTargetNameOverride(settings.server_name);
  return grpc::CreateCustomChannel(endpoint,
                                   grpc::SslCredentials({.pem_root_certs = settings.ca,
                                                         .pem_private_key = settings.key,
                                                         .pem_cert_chain = settings.certificate}),
                                   arguments);
}

}  // namespace

class Rpc::Impl {
 public:
  explicit Impl(Settings given) : settings_(std::move(given)) {
    for (const auto& endpoint : settings_.endpoints)
      channels_.push_back(open_channel(settings_, endpoint));
  }

  void start(std::function<void()> tick) {
    tick_ = std::move(tick);
    thread_ = core::quiet_thread([this] { run(); });
  }

  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    nudge();
    thread_.join();
  }

  /// A request on its way, from member to member.
  template <class Request, class Response>
  struct Job {
    const char* method;
    Request request;
    Call call;
    Then<Response> then;
    std::size_t tries = 0;
    TimePoint sent{};
    bool repeated = false;
    bool authenticated = false;  ///< for this very request
  };

  template <class Request, class Response>
  void send(const char* method, Request request, Call call, Then<Response> then) {
    auto job = std::make_shared<Job<Request, Response>>();
    job->method = method;
    job->request = std::move(request);
    job->call = call;
    job->then = std::move(then);
    if (settings_.user.empty() || !token().empty()) return attempt(std::move(job));
    authenticate(std::move(job));
  }

  template <class Request, class Response>
  class Stream;
  template <class Request, class Response>
  std::shared_ptr<Outbox<Request>> open(const char* method,
                                        std::function<void(const Response&)> message,
                                        std::function<void()> ended);

 private:
  template <class Request, class Response>
  class Unary;
  class Nudge;

  [[nodiscard]] std::string token() {
    const std::lock_guard lock(mutex_);
    return token_;
  }
  /// Returns the token that goes along.
  std::string prepare(grpc::ClientContext& context) {
    auto text = token();
    if (!text.empty()) context.AddMetadata("token", text);
    return text;
  }

  template <class Request, class Response>
  void authenticate(std::shared_ptr<Job<Request, Response>> job) {
    job->authenticated = true;
    auto login = std::make_shared<Job<wire::AuthenticateRequest, wire::AuthenticateResponse>>();
    login->method = "/etcdserverpb.Auth/Authenticate";
    login->request.set_name(settings_.user);
    login->request.set_password(settings_.password);
    login->call = job->call;
    login->authenticated = true;
    login->then = [this, job](const Outcome<wire::AuthenticateResponse>& outcome, Call call) {
      job->call = call;
      if (outcome.failure)
        return job->then({.failure = outcome.failure, .response = {}, .repeated = job->repeated},
                         call);
      const auto& token = outcome.response.token();
      if (!can_be_sent(token)) {
        return job->then({.failure = failure({grpc::StatusCode::UNAUTHENTICATED,
                                              "a token that can't be sent back; is this etcd?"},
                                             settings_.where(), job->repeated, {}),
                          .response = {},
                          .repeated = job->repeated},
                         call);
      }
      {
        const std::lock_guard lock(mutex_);
        token_ = token;
      }
      attempt(job);
    };
    {
      const std::lock_guard lock(mutex_);
      token_.clear();
    }
    attempt(std::move(login));
  }

  template <class Request, class Response>
  void attempt(std::shared_ptr<Job<Request, Response>> job);
  template <class Request, class Response>
  void answered(std::shared_ptr<Job<Request, Response>> job, std::size_t member,
                grpc::Status status, Response response, const std::string& token);

  /// A connection ended, as etcd ends one now and then, and not for want of a server.
  [[nodiscard]] bool opens_again(std::size_t member, const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE &&
           channels_[member]->GetState(false) != GRPC_CHANNEL_TRANSIENT_FAILURE;
  }

  /// Gives up a member; its streams end, and begin anew elsewhere.
  void leave(std::size_t member) {
    if (channels_.size() < 2) return;
    const std::lock_guard lock(mutex_);
    if (member_ != member) return;
    member_ = (member + 1) % channels_.size();
    for (auto* context : streams_) context->TryCancel();
  }

  std::unique_ptr<grpc::CompletionQueue> take_queue() {
    const std::lock_guard lock(mutex_);
    if (idle_queues_.empty()) return std::make_unique<grpc::CompletionQueue>();
    auto queue = std::move(idle_queues_.back());
    idle_queues_.pop_back();
    return queue;
  }
  void give_back(std::unique_ptr<grpc::CompletionQueue> queue) {
    const std::lock_guard lock(mutex_);
    idle_queues_.push_back(std::move(queue));
  }

  /// Steps are begun under the lock, and not once the queue is closed.
  template <class Begin>
  bool begin(const std::shared_ptr<Step>& step, Begin begin_it) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    steps_.emplace(step.get(), step);
    begin_it();
    return true;
  }
  std::shared_ptr<Step> end(void* tag) {
    const std::lock_guard lock(mutex_);
    const auto it = steps_.find(static_cast<Step*>(tag));
    auto step = std::move(it->second);
    steps_.erase(it);
    return step;
  }

  void nudge();
  void run();
  void look_after_slow_calls();
  void close();

  const Settings settings_;
  std::function<void()> tick_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  grpc::CompletionQueue queue_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  // Guarded by the mutex:
  bool closed_ = false;
  std::size_t member_ = 0;
  std::string token_;
  std::unordered_multimap<Step*, std::shared_ptr<Step>> steps_;
  std::unordered_set<grpc::ClientContext*> calls_;
  std::unordered_set<grpc::ClientContext*> streams_;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> idle_queues_;
  struct Slow {
    std::unique_ptr<grpc::CompletionQueue> queue;
    std::shared_ptr<Step> step;
    bool ok = false;
  };
  std::list<Slow> slow_;
  // After all that its steps may touch.
  std::thread thread_;
};

template <class Request, class Response>
class Rpc::Impl::Unary final : public Step {
 public:
  Unary(Impl& impl, std::shared_ptr<Job<Request, Response>> job, std::size_t member)
      : impl_(impl), job_(std::move(job)), member_(member) {
    token_ = impl_.prepare(context_);
    context_.set_deadline(wall(deadline()));
    const std::lock_guard lock(impl_.mutex_);
    impl_.calls_.insert(&context_);
  }
  Unary(const Unary&) = delete;
  Unary& operator=(const Unary&) = delete;
  ~Unary() override {
    const std::lock_guard lock(impl_.mutex_);
    impl_.calls_.erase(&context_);
  }

  void begin(grpc::CompletionQueue& queue) {
    grpc::TemplatedGenericStub<Request, Response> stub(impl_.channels_[member_]);
    reader_ = stub.PrepareUnaryCall(&context_, job_->method, job_->request, &queue);
    reader_->StartCall();
    reader_->Finish(&response_, &status_, this);
  }

  void done(bool understood) override {
    if (status_.ok() && !understood)
      status_ = {grpc::StatusCode::INTERNAL, "its answer makes no sense, or is too long"};
    impl_.answered(std::move(job_), member_, status_, std::move(response_), token_);
  }
  void left_alone() { job_->call.caller_waits = false; }

 private:
  [[nodiscard]] TimePoint deadline() const {
    const auto members = impl_.channels_.size();
    const auto left = job_->call.deadline - BootClock::now();
    if (job_->tries + 1 >= members) return job_->call.deadline;
    const auto share = left / static_cast<int>(members - job_->tries);
    return std::min(job_->call.deadline, BootClock::now() + std::max(share, kLeastPatience));
  }

  Impl& impl_;
  std::shared_ptr<Job<Request, Response>> job_;
  const std::size_t member_;
  std::string token_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  Response response_;
  grpc::Status status_;
};

template <class Request, class Response>
void Rpc::Impl::attempt(std::shared_ptr<Job<Request, Response>> job) {
  std::size_t member = 0;
  {
    const std::lock_guard lock(mutex_);
    member = member_;
  }
  const bool own = job->call.caller_waits;
  job->sent = BootClock::now();
  const auto unary = std::make_shared<Unary<Request, Response>>(*this, std::move(job), member);
  if (!own) {
    begin(unary, [&] { unary->begin(queue_); });
    return;
  }
  auto queue = take_queue();
  unary->begin(*queue);
  void* tag = nullptr;
  bool ok = false;
  if (queue->AsyncNext(&tag, &ok, wall(BootClock::now() + kOwnCall)) ==
      grpc::CompletionQueue::GOT_EVENT) {
    give_back(std::move(queue));
    return unary->done(ok);
  }
  unary->left_alone();
  {
    const std::lock_guard lock(mutex_);
    slow_.push_back({.queue = std::move(queue), .step = unary});
  }
  nudge();
}

template <class Request, class Response>
void Rpc::Impl::answered(std::shared_ptr<Job<Request, Response>> job, std::size_t member,
                         grpc::Status status, Response response, const std::string& token) {
  if (status.ok() && !fits(job->request, response))
    status = {grpc::StatusCode::INTERNAL, "its answer does not fit what was asked"};
  if (status.ok()) {
    return job->then({.failure = {}, .response = std::move(response), .repeated = job->repeated},
                     job->call);
  }
  if (!settings_.user.empty() && wants_new_token(status) && !job->authenticated)
    return authenticate(std::move(job));
  if (try_elsewhere(status)) {
    // Whoever had no time to answer is not to blame.
    if (status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED ||
        BootClock::now() - job->sent >= kLeastPatience)
      leave(member);
    job->repeated = true;
    const auto most = channels_.size() + (opens_again(member, status) ? kReconnects : 0);
    if (++job->tries < most && BootClock::now() < job->call.deadline && !stopping_)
      return attempt(std::move(job));
  }
  job->then({.failure = failure(status, settings_.where(settings_.endpoints[member]), job->repeated,
                                {settings_.password, token}),
             .response = {},
             .repeated = job->repeated},
            job->call);
}

/// One stream. Each of its steps is begun under the lock of Impl and ends on the background thread.
template <class Request, class Response>
class Rpc::Impl::Stream final : public Outbox<Request>,
                                public std::enable_shared_from_this<Stream<Request, Response>> {
 public:
  using Message = std::function<void(const Response&)>;

  Stream(Impl& impl, Message message, std::function<void()> ended)
      : impl_(impl), message_(std::move(message)), ended_(std::move(ended)) {
    impl_.prepare(context_);
    // A member that lost its leader says so, instead of saying nothing.
    context_.AddMetadata("hasleader", "true");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() override {
    const std::lock_guard lock(impl_.mutex_);
    impl_.streams_.erase(&context_);
  }

  void begin(const char* method) {
    const auto first = part([](Stream& self, bool ok) { self.started(ok); });
    impl_.begin(first, [&] {
      impl_.streams_.insert(&context_);
      grpc::TemplatedGenericStub<Request, Response> stub(impl_.channels_[impl_.member_]);
      stream_ = stub.PrepareCall(&context_, method, &impl_.queue_);
      stream_->StartCall(first.get());
    });
  }

  void send(Request request) override {
    {
      const std::lock_guard lock(impl_.mutex_);
      if (over_) return;
      out_.push_back(std::move(request));
      if (!started_ || writing_) return;
      writing_ = true;
    }
    write();
  }

 private:
  class Part final : public Step {
   public:
    Part(std::shared_ptr<Stream> stream, void (*then)(Stream&, bool))
        : stream_(std::move(stream)), then_(then) {}
    void done(bool ok) override { then_(*stream_, ok); }

   private:
    std::shared_ptr<Stream> stream_;
    void (*then_)(Stream&, bool);
  };

  std::shared_ptr<Part> part(void (*then)(Stream&, bool)) {
    return std::make_shared<Part>(this->shared_from_this(), then);
  }

  void started(bool ok) {
    if (!ok) return finish();
    bool writes = false;
    {
      const std::lock_guard lock(impl_.mutex_);
      started_ = true;
      writes = writing_ = !out_.empty();
    }
    read();
    if (writes) write();
  }
  void read() {
    const auto next = part([](Stream& self, bool ok) { self.was_read(ok); });
    impl_.begin(next, [&] { stream_->Read(&response_, next.get()); });
  }
  void was_read(bool ok) {
    if (!ok) return finish();
    message_(response_);
    read();
  }
  void write() {
    const auto next = part([](Stream& self, bool ok) { self.was_written(ok); });
    impl_.begin(next, [&] { stream_->Write(out_.front(), next.get()); });
  }
  void was_written(bool ok) {
    {
      const std::lock_guard lock(impl_.mutex_);
      out_.pop_front();
      writing_ = ok && !out_.empty();
      if (!writing_) return;
    }
    write();
  }
  void finish() {
    {
      const std::lock_guard lock(impl_.mutex_);
      if (over_) return;
      over_ = true;
    }
    context_.TryCancel();
    const auto next = part([](Stream& self, bool) { self.finished(); });
    impl_.begin(next, [&] { stream_->Finish(&status_, next.get()); });
  }
  void finished() {
    {
      const std::lock_guard lock(impl_.mutex_);
      impl_.streams_.erase(&context_);
    }
    ended_();
  }

  Impl& impl_;
  Message message_;
  std::function<void()> ended_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream_;
  Response response_;
  grpc::Status status_;
  // Guarded by Impl's mutex:
  std::deque<Request> out_;
  bool started_ = false;
  bool writing_ = false;
  bool over_ = false;
};

template <class Request, class Response>
std::shared_ptr<Outbox<Request>> Rpc::Impl::open(const char* method,
                                                 std::function<void(const Response&)> message,
                                                 std::function<void()> ended) {
  auto stream =
      std::make_shared<Stream<Request, Response>>(*this, std::move(message), std::move(ended));
  stream->begin(method);
  return stream;
}

class Rpc::Impl::Nudge final : public Step {
 public:
  void begin(grpc::CompletionQueue& queue) {
    alarm_.Set(&queue, std::chrono::system_clock::now(), this);
  }
  void done(bool) override {}

 private:
  grpc::Alarm alarm_;
};

void Rpc::Impl::nudge() {
  const auto step = std::make_shared<Nudge>();
  begin(step, [&] { step->begin(queue_); });
}

void Rpc::Impl::run() {
  auto next_tick = BootClock::now() + kTick;
  while (!stopping_) {
    auto until = next_tick;
    {
      const std::lock_guard lock(mutex_);
      if (!slow_.empty()) until = std::min(until, BootClock::now() + kSlowCalls);
    }
    void* tag = nullptr;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, wall(until)) == grpc::CompletionQueue::GOT_EVENT)
      (void)core::contain([&] { end(tag)->done(ok); });
    if (stopping_) break;
    (void)core::contain([&] { look_after_slow_calls(); });
    if (BootClock::now() < next_tick) continue;
    (void)core::contain([&] { tick_(); });
    next_tick = BootClock::now() + kTick;
  }
  close();
}

void Rpc::Impl::look_after_slow_calls() {
  std::list<Slow> ready;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = slow_.begin(); it != slow_.end();) {
      void* tag = nullptr;
      const auto next = std::next(it);
      if (it->queue->AsyncNext(&tag, &it->ok, std::chrono::system_clock::time_point{}) ==
          grpc::CompletionQueue::GOT_EVENT)
        ready.splice(ready.end(), slow_, it);
      it = next;
    }
  }
  for (auto& call : ready) {
    give_back(std::move(call.queue));
    call.step->done(call.ok);
  }
}

// What is under way is let go of, and nobody is told.
void Rpc::Impl::close() {
  std::list<Slow> slow;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto* context : calls_) context->TryCancel();
    for (auto* context : streams_) context->TryCancel();
    slow.swap(slow_);
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) (void)end(tag);
  for (auto& call : slow) {
    call.queue->Shutdown();
    while (call.queue->Next(&tag, &ok)) {
    }
  }
}

Rpc::Rpc(Settings settings) {
  check_not_forked_since_first_use(settings);
  impl_ = std::make_unique<Impl>(std::move(settings));
}
Rpc::~Rpc() { stop(); }
void Rpc::start(std::function<void()> tick) { impl_->start(std::move(tick)); }
void Rpc::stop() { impl_->stop(); }

void Rpc::txn(wire::TxnRequest request, Call call, Then<wire::TxnResponse> then) {
  impl_->send<wire::TxnRequest, wire::TxnResponse>("/etcdserverpb.KV/Txn", std::move(request), call,
                                                   std::move(then));
}

void Rpc::grant_lease(wire::LeaseGrantRequest request, Call call,
                      Then<wire::LeaseGrantResponse> then) {
  impl_->send<wire::LeaseGrantRequest, wire::LeaseGrantResponse>(
      "/etcdserverpb.Lease/LeaseGrant", std::move(request), call, std::move(then));
}

std::shared_ptr<Outbox<wire::WatchRequest>> Rpc::watch(
    std::function<void(const wire::WatchResponse&)> message, std::function<void()> ended) {
  return impl_->open<wire::WatchRequest, wire::WatchResponse>("/etcdserverpb.Watch/Watch",
                                                              std::move(message), std::move(ended));
}

std::shared_ptr<Outbox<wire::LeaseKeepAliveRequest>> Rpc::keep_alive(
    std::function<void(const wire::LeaseKeepAliveResponse&)> message, std::function<void()> ended) {
  return impl_->open<wire::LeaseKeepAliveRequest, wire::LeaseKeepAliveResponse>(
      "/etcdserverpb.Lease/LeaseKeepAlive", std::move(message), std::move(ended));
}

}  // namespace interlock::etcd
