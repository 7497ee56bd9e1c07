#include "backends/redis/server.hpp"

#include <algorithm>
#include <utility>

namespace interlock::redis {

namespace {

constexpr auto kListenTimeout = std::chrono::seconds(2);
// Whoever waits asks every second.
constexpr auto kWantedFor = std::chrono::seconds(5);

std::string run_of(const redisReply& info) {
  constexpr std::string_view kName = "\nrun_id:";
  const auto text = is_error(info) ? std::string_view{} : text_of(info);
  const auto at = text.find(kName);
  if (at == std::string_view::npos) return {};
  const auto digits = text.substr(at + kName.size(), Server::kRunDigits);
  const bool good = digits.size() == Server::kRunDigits &&
                    digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return good ? std::string(digits) : std::string();
}

// "id=7 addr=127.0.0.1:40972 …": a server that was started again gives the same ids to others.
std::string end_of(const redisReply& info) {
  const auto text = is_error(info) ? std::string_view{} : text_of(info);
  const auto field = [&](std::string_view name) {
    const auto at = text.find(name);
    if (at == std::string_view::npos) return std::string_view{};
    const auto value = text.substr(at + name.size());
    return value.substr(0, value.find_first_of(" \r\n"));
  };
  const auto id = field("id=");
  const auto address = field(" addr=");
  if (id.empty() || address.empty()) return {};
  return command({"CLIENT", "KILL", "ID", id, "ADDR", address});
}

// WAIT for nobody answers at once, if there is such a command and we may give it.
Link::Greeting knows_wait(const std::string& node) {
  return {.bytes = command({"WAIT", "0", "1"}),
          .check = [node](const redisReply& reply) -> std::optional<Error> {
            if (!is_error(reply)) return std::nullopt;
            const auto why = to_error(text_of(reply), node);
            if (why.retryable()) return why;
            if (text_of(reply).find("replica instances") != std::string_view::npos)
              return Error(Errc::unreachable, "the server is a replica (now)",
                           {.resource = {}, .node = node, .maybe_held = false});
            return Error(why.errc(),
                         "min-replicas needs the command WAIT; allow it, or leave min-replicas "
                         "out: " +
                             why.message(),
                         {.resource = {}, .node = node, .maybe_held = false});
          }};
}

}  // namespace

Server::Server(Loop& loop, std::string name, const Endpoint& endpoint, const Access& access,
               std::string channel, WakeSink wake, Kind kind)
    : loop_(loop),
      name_(std::move(name)),
      access_(access),
      kind_(std::move(kind)),
      subscription_(std::make_shared<Subscription>(std::move(wake))),
      channel_(std::move(channel)),
      endpoint_(endpoint) {
  Link::Plan plan{.name = name_, .endpoint = endpoint_, .access = access_};
  plan.greetings = greetings(access);
  plan.greetings.push_back({.bytes = command({"CLIENT", "INFO"}), .end = end_of});
  const auto& all = Scripts::all();
  auto scripts = kind_.scripts;
  if (scripts.empty()) scripts = {&all.acquire, &all.renew, &all.release, &all.inspect};
  for (const auto* script : scripts) {
    plan.greetings.push_back({.bytes = command({"SCRIPT", "LOAD", script->text})});
  }
  if (kind_.min_replicas > 0) {
    plan.greetings.push_back(knows_wait(name_));
    apart_ = loop_.add(plan);
  }
  if (kind_.stamps_run)
    plan.greetings.push_back({.bytes = command({"INFO", "server"}), .stamp = run_of});
  plan.on_open = [first = first_open_] {
    if (*first) std::exchange(*first, nullptr)();
  };
  // It was a master when we came, and is none any more: its name may lead to another server by now.
  plan.on_error = [this](std::string_view text) {
    const auto code = error_code(text);
    if (code == "READONLY" || code == "MASTERDOWN") reconnect();
  };
  commands_ = loop_.add(std::move(plan));
}

void Server::on_facts(std::function<void(const Facts&)> tell) {
  *first_open_ = [this, tell = std::move(tell)] {
    const Call how{.deadline = BootClock::now() + access_.call_timeout, .caller_waits = false};
    send(command({"INFO"}), how, [tell](const Outcome& outcome) {
      if (!outcome.reply || is_error(*outcome.reply)) return;  // it has not the right to ask
      Facts facts;
      for (auto rest = text_of(*outcome.reply); !rest.empty();) {
        const auto end = std::min(rest.find("\r\n"), rest.size());
        const auto line = rest.substr(0, end);
        const auto colon = line.find(':');
        if (colon != std::string_view::npos)
          facts.emplace(line.substr(0, colon), line.substr(colon + 1));
        rest.remove_prefix(std::min(end + 2, rest.size()));
      }
      tell(facts);
    });
  };
}

Server::~Server() {
  loop_.remove(commands_);
  if (apart_) loop_.remove(apart_);
  if (messages_) loop_.remove(messages_);
}

std::vector<Link::Greeting> log_in(const Access& access) {
  if (access.password.empty()) return {};
  return {{.bytes = access.user.empty() ? command({"AUTH", access.password})
                                        : command({"AUTH", access.user, access.password}),
           .must = true}};
}

std::vector<Link::Greeting> Server::greetings(const Access& access) const {
  auto list = log_in(access);
  if (access.database != 0) {
    list.push_back({.bytes = command({"SELECT", std::to_string(access.database)}), .must = true});
  }
  list.push_back({.bytes = command({"CLIENT", "SETNAME", "interlock"})});
  if (kind_.master_only) {
    list.push_back({.bytes = command({"ROLE"}), .must = true, .check = [](const redisReply& reply) {
                      const auto words = elements_of(reply);
                      return !words.empty() && text_of(*words[0]) == "master"
                                 ? std::nullopt
                                 : std::optional(Error(Errc::unreachable,
                                                       "the server is no master (any more)"));
                    }});
  }
  return list;
}

std::vector<Link::Greeting> Server::listening() const {
  auto access = access_;
  access.database = 0;  // channels are of no database
  auto list = greetings(access);
  list.push_back(
      {.bytes = command({kind_.sharded ? "SSUBSCRIBE" : "SUBSCRIBE", channel_}), .must = true});
  return list;
}

void Server::post(const Loop::Handle& link, std::string bytes, const Call& how, Then then,
                  int replies) {
  loop_.post(link, {.bytes = std::move(bytes),
                    .deadline = how.deadline,
                    .urgent = !how.caller_waits,
                    .replies = replies,
                    .done = std::move(then)});
}

void Server::send(std::string bytes, Call how, Then then) {
  post(commands_, std::move(bytes), how, std::move(then));
}

void Server::send_apart(std::string bytes, Call how, Then then) {
  post(apart_, std::move(bytes), how, std::move(then));
}

void Server::send_stamped(std::string bytes, Call how, Then then) {
  loop_.post(commands_, {.bytes = std::move(bytes),
                         .deadline = how.deadline,
                         .urgent = !how.caller_waits,
                         .stamped = true,
                         .done = std::move(then)});
}

void Server::run(const Script& script, Words words, Call how, Then then, bool asking) {
  run_on(commands_, script, std::move(words), how, std::move(then), asking);
}

void Server::run_apart(const Script& script, Words words, Call how, Then then) {
  run_on(apart_, script, std::move(words), how, std::move(then), false);
}

void Server::run_on(const Loop::Handle& link, const Script& script, Words words, Call how,
                    Then then, bool asking) {
  const auto give = [this, link, asking, how](std::string bytes, Then done) {
    if (!asking) return post(link, std::move(bytes), how, std::move(done));
    // In one piece: ASKING is for the very next command of the connection.
    post(link, command({"ASKING"}) + bytes, how, std::move(done), 2);
  };
  auto bytes = call(script, words, false);
  give(std::move(bytes),
       [give, &script, words = std::move(words), then = std::move(then)](Outcome outcome) {
         if (is_unknown_script(outcome)) return give(call(script, words, true), then);
         then(std::move(outcome));
       });
}

bool Server::listen(std::function<void()> late) {
  const std::lock_guard lock(subscription_->mutex);
  subscription_->wanted_until = BootClock::now() + kWantedFor;
  if (subscription_->open) return true;
  subscription_->late.push_back(std::move(late));
  if (messages_) {
    loop_.change(messages_, [](Link&, TimePoint, Finished&) {});  // it may have given up
    return false;
  }
  Link::Plan plan{.name = name_, .endpoint = endpoint_, .access = access_};
  // Whoever is waited for here keeps its place in the queue for three seconds.
  plan.access.connect_timeout = std::min<Duration>(plan.access.connect_timeout, kListenTimeout);
  plan.greetings = listening();
  plan.keep_open = [subscription = subscription_] { return subscription->wanted(); };
  plan.on_open = [subscription = subscription_] { subscription->is(true); };
  plan.on_close = [subscription = subscription_](const Error&) { subscription->is(false); };
  plan.on_push = [subscription = subscription_](const redisReply& reply) {
    subscription->message(reply);
  };
  messages_ = loop_.add(std::move(plan));
  return false;
}

void Server::redirect(const Endpoint& endpoint) {
  const std::lock_guard lock(subscription_->mutex);
  endpoint_ = endpoint;
  const auto go = [endpoint](Link& link, TimePoint now, Finished& finished) {
    link.redirect(endpoint, now, finished);
  };
  loop_.change(commands_, go);
  if (apart_) loop_.change(apart_, go);
  if (messages_) loop_.change(messages_, go);
}

void Server::reconnect() {
  const auto go = [](Link& link, TimePoint now, Finished& finished) {
    link.reconnect(now, finished);
  };
  loop_.change(commands_, go);
  if (apart_) loop_.change(apart_, go);
  const std::lock_guard lock(subscription_->mutex);
  if (messages_) loop_.change(messages_, go);
}

void Server::refuse(const Error& why) {
  const auto give_up = [why](Link& link, TimePoint, Finished& finished) {
    link.refuse(why, finished);
  };
  loop_.change(commands_, give_up);
  if (apart_) loop_.change(apart_, give_up);
}

void Server::set_channel(std::string channel) {
  const std::lock_guard lock(subscription_->mutex);
  channel_ = std::move(channel);
  if (!messages_) return;
  loop_.change(messages_, [list = listening()](Link& link, TimePoint now, Finished& finished) {
    link.set_greetings(list);
    link.reconnect(now, finished);
  });
}

bool Server::Subscription::wanted() {
  const std::lock_guard lock(mutex);
  return BootClock::now() < wanted_until;
}

void Server::Subscription::is(bool now_open) {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex);
    open = now_open;
    waiting.swap(late);
  }
  if (now_open) {
    for (const auto& tell : waiting) tell();
  } else if (deaf) {
    deaf();
  }
}

void Server::Subscription::message(const redisReply& reply) const {
  const auto words = elements_of(reply);
  if (words.size() != 3) return;
  const auto kind = text_of(*words[0]);
  if (kind == "sunsubscribe" && deaf) deaf();  // its slot moved away
  if (kind != "message" && kind != "smessage") return;
  if (const auto owner = Owner::parse(text_of(*words[2]))) sink(*owner);
}

}  // namespace interlock::redis
