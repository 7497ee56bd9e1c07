#include "backends/redis/sentinel.hpp"

#include <charconv>
#include <map>

namespace interlock::redis {

namespace {

std::uint64_t to_epoch(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Sentinel::Sentinel(Loop& loop, const KeyNames& names, const Plan& plan, WakeSink wake,
                   WarnSink warn)
    : OneServer(loop, names, plan.where, Endpoint{}, plan.access, std::move(wake), warn,
                {.master_only = true, .min_replicas = plan.min_replicas}),
      loop_(loop),
      access_(plan.access),
      warn_(std::move(warn)),
      sentinels_(plan.sentinels),
      name_(plan.master),
      problems_(plan.sentinels.size()) {
  for (std::size_t which = 0; which < sentinels_.size(); ++which) {
    const auto& sentinel = sentinels_[which];
    Link::Plan link{.name = "sentinel " + sentinel.to_string(),
                    .endpoint = sentinel,
                    .access = plan.sentinel_access};
    link.greetings = log_in(plan.sentinel_access);
    link.greetings.push_back(
        {.bytes = command({"SENTINEL", "MASTER", plan.master}),
         .must = true,
         .check = [this, which](const redisReply& reply) -> std::optional<Error> {
           std::map<std::string_view, std::string_view> fields;
           const auto words = elements_of(reply);
           for (std::size_t i = 0; i + 1 < words.size(); i += 2)
             fields[text_of(*words[i])] = text_of(*words[i + 1]);
           learn({.host = std::string(fields["ip"]), .port = std::string(fields["port"])},
                 to_epoch(fields["config-epoch"]));
           const std::lock_guard lock(mutex_);
           problems_[which].reset();
           return std::nullopt;
         }});
    link.greetings.push_back({.bytes = command({"SUBSCRIBE", "+switch-master"}), .must = true});
    link.keep_open = [] { return true; };
    link.on_close = [this, which](const Error& why) { note(which, why); };
    link.on_push = [this, which](const redisReply& message) { told(which, message); };
    const std::lock_guard lock(mutex_);
    links_.push_back(loop_.add(std::move(link)));
  }
}

Sentinel::~Sentinel() {
  for (const auto& link : links_) loop_.remove(link);
}

void Sentinel::learn(const Endpoint& master, std::uint64_t epoch) {
  {
    const std::lock_guard lock(mutex_);
    if (master.host.empty() || epoch < epoch_) return;
    epoch_ = epoch;
    if (master == master_) return;
    master_ = master;
  }
  if (const auto risk = readable_password({master}, access_, "rediss+sentinel"))
    warn_of({*risk}, server()->name(), warn_);
  server()->redirect(master);
}

void Sentinel::note(std::size_t sentinel, const Error& problem) {
  {
    const std::lock_guard lock(mutex_);
    problems_[sentinel] = problem;
  }
  if (const auto why = lost()) server()->refuse(*why);
}

std::optional<Error> Sentinel::lost() const {
  const std::lock_guard lock(mutex_);
  if (!master_.host.empty()) return std::nullopt;
  std::string each;
  bool may_change = false;
  for (std::size_t i = 0; i < problems_.size(); ++i) {
    if (!problems_[i]) return std::nullopt;
    may_change = may_change || problems_[i]->retryable();
    each += (each.empty() ? "" : "; ") + sentinels_[i].to_string() + ": " + problems_[i]->message();
  }
  return Error(may_change ? Errc::unreachable : Errc::refused,
               "no sentinel says which server is '" + name_ + "' (" + each + ")",
               {.resource = {}, .node = server()->name(), .maybe_held = false});
}

// "name old-ip old-port new-ip new-port": not since which epoch. So it is asked for that, on a new
// connection, as this one is for messages.
void Sentinel::told(std::size_t sentinel, const redisReply& message) {
  const auto words = elements_of(message);
  if (words.size() != 3 || text_of(*words[1]) != "+switch-master") return;
  if (!text_of(*words[2]).starts_with(name_ + " ")) return;
  const std::lock_guard lock(mutex_);
  loop_.change(links_[sentinel], [](Link& link, TimePoint now, Finished& finished) {
    link.reconnect(now, finished);
  });
}

void Sentinel::run(std::uint16_t slot, const Script& script, const MakeWords& words, Call how,
                   Server::Then then) {
  if (auto why = lost()) return then({.reply = {}, .failure = std::move(why)});
  OneServer::run(slot, script, words, how, std::move(then));
}

}  // namespace interlock::redis
