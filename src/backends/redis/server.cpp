#include "backends/redis/server.hpp"

#include <algorithm>
#include <utility>

namespace interlock::redis {

namespace {

constexpr auto kListenTimeout = std::chrono::seconds(2);

}  // namespace

Server::Server(Loop& loop, std::string name, const Endpoint& endpoint, const Access& access,
               std::string channel, WakeSink wake)
    : loop_(loop),
      name_(std::move(name)),
      channel_(std::move(channel)),
      endpoint_(endpoint),
      access_(access),
      subscription_(std::make_shared<Subscription>(std::move(wake))) {
  Link::Plan plan{.name = name_, .endpoint = endpoint_, .access = access_};
  plan.greetings = greetings(access);
  const auto& scripts = Scripts::all();
  for (const auto* script :
       {&scripts.acquire, &scripts.renew, &scripts.release, &scripts.inspect}) {
    plan.greetings.push_back({.bytes = command({"SCRIPT", "LOAD", script->text})});
  }
  commands_ = loop_.add(std::move(plan));
}

Server::~Server() {
  loop_.remove(commands_);
  if (messages_) loop_.remove(messages_);
}

std::vector<Link::Greeting> Server::greetings(const Access& access) const {
  std::vector<Link::Greeting> list;
  if (!access.password.empty() && !access.user.empty()) {
    list.push_back({.bytes = command({"AUTH", access.user, access.password}), .must = true});
  } else if (!access.password.empty()) {
    list.push_back({.bytes = command({"AUTH", access.password}), .must = true});
  }
  if (access.database != 0) {
    list.push_back({.bytes = command({"SELECT", std::to_string(access.database)}), .must = true});
  }
  list.push_back({.bytes = command({"CLIENT", "SETNAME", "interlock"})});
  return list;
}

void Server::send(std::string bytes, Call how, Then then) {
  loop_.post(commands_, {.bytes = std::move(bytes),
                         .deadline = how.deadline,
                         .urgent = !how.caller_waits,
                         .done = std::move(then)});
}

void Server::run(const Script& script, Words words, Call how, Then then) {
  auto bytes = call(script, words, false);
  send(std::move(bytes), how,
       [this, &script, words = std::move(words), how, then = std::move(then)](Outcome outcome) {
         if (outcome.reply && is_error(*outcome.reply) &&
             error_code(text_of(*outcome.reply)) == "NOSCRIPT") {
           return send(call(script, words, true), how, then);
         }
         then(std::move(outcome));
       });
}

bool Server::listen(std::function<void(bool)> then) {
  const std::lock_guard lock(subscription_->mutex);
  if (subscription_->open) return true;
  subscription_->then.push_back(std::move(then));
  if (std::exchange(subscription_->wanted, true)) return false;
  Link::Plan plan{.name = name_, .endpoint = endpoint_, .access = access_};
  plan.access.database = 0;  // channels are of no database
  // Whoever is waited for here keeps its place in the queue for three seconds.
  plan.access.connect_timeout = std::min<Duration>(plan.access.connect_timeout, kListenTimeout);
  plan.greetings = greetings(plan.access);
  plan.greetings.push_back({.bytes = command({"SUBSCRIBE", channel_}), .must = true});
  plan.keep_open = true;
  plan.on_open = [subscription = subscription_] { subscription->is(true); };
  plan.on_close = [subscription = subscription_] { subscription->is(false); };
  plan.on_push = [subscription = subscription_](const redisReply& reply) {
    subscription->message(reply);
  };
  messages_ = loop_.add(std::move(plan));
  return false;
}

void Server::Subscription::is(bool now_open) {
  std::vector<std::function<void(bool)>> waiting;
  {
    const std::lock_guard lock(mutex);
    open = now_open;
    waiting.swap(then);
  }
  for (const auto& tell : waiting) tell(now_open);
}

void Server::Subscription::message(const redisReply& reply) const {
  const auto words = elements_of(reply);
  if (words.size() != 3 || text_of(*words[0]) != "message") return;
  if (const auto owner = Owner::parse(text_of(*words[2]))) sink(*owner);
}

}  // namespace interlock::redis
