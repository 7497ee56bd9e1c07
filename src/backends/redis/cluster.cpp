#include "backends/redis/cluster.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "backends/redis/keys.hpp"

namespace interlock::redis {

namespace {

constexpr int kMostRedirects = 5;

std::string name_of(const Endpoint& endpoint) { return "redis+cluster://" + endpoint.to_string(); }

}  // namespace

std::optional<Redirect> parse_redirect(std::string_view text) {
  Redirect redirect;
  const auto space = text.find(' ');
  const auto second = text.find(' ', space + 1);
  if (space == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  const auto slot = text.substr(space + 1, second - space - 1);
  std::from_chars(slot.data(), slot.data() + slot.size(), redirect.slot);
  auto address = text.substr(second + 1);
  address = address.substr(0, address.find(' '));
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos || redirect.slot >= kSlots) return std::nullopt;
  redirect.to = {.host = std::string(address.substr(0, colon)),
                 .port = std::string(address.substr(colon + 1))};
  return redirect;
}

std::vector<SlotRange> parse_slots(const redisReply& reply) {
  std::vector<SlotRange> ranges;
  for (const auto* range : elements_of(reply)) {
    const auto words = elements_of(*range);
    if (words.size() < 3) continue;
    const auto first = number_of(*words[0]);
    const auto last = number_of(*words[1]);
    const auto master = elements_of(*words[2]);
    if (master.size() < 2 || first < 0 || last >= kSlots) continue;
    ranges.push_back({.first = first,
                      .last = last,
                      .master = {.host = std::string(text_of(*master[0])),
                                 .port = std::to_string(number_of(*master[1]))}});
  }
  return ranges;
}

Cluster::Cluster(Loop& loop, const KeyNames& names, std::vector<Endpoint> seeds, Access access,
                 WakeSink wake, WarnSink warn)
    : loop_(loop),
      seeds_(std::move(seeds)),
      access_(std::move(access)),
      wake_(std::move(wake)),
      warn_(std::move(warn)),
      texts_(texts_in_slots(names.prefix())),
      owners_(kSlots) {}

Cluster::NodePtr Cluster::node_at(const Endpoint& endpoint) {
  auto& node = nodes_[endpoint];
  if (!node) {
    node = std::make_shared<Node>();
    node->server = std::make_shared<Server>(loop_, name_of(endpoint), endpoint, access_, "", wake_,
                                            Server::Kind{.master_only = false, .sharded = true});
    node->server->on_facts([this, endpoint](const Server::Facts& facts) {
      auto risks = risks_of(facts, false);
      // Traits::warnings has those that the URL names.
      const bool named = std::find(seeds_.begin(), seeds_.end(), endpoint) != seeds_.end();
      if (auto risk = readable_password({endpoint}, access_, "rediss+cluster"); risk && !named)
        risks.push_back(std::move(*risk));
      warn_of(risks, name_of(endpoint), warn_);
    });
    // Its channel may have moved to another node, with its slot.
    node->server->on_deaf([this] { learn([](const std::optional<Error>&) {}); });
  }
  return node;
}

void Cluster::give_channel(Node& node, std::uint16_t slot) {
  node.channel_slot = slot;
  node.channel = "{" + texts_[slot] + "}wake:" + Owner::random().to_string();
  node.server->set_channel(node.channel);
}

void Cluster::run(std::uint16_t slot, const Script& script, const MakeWords& words, Call how,
                  Server::Then then) {
  go(std::make_shared<Job>(Job{.slot = slot,
                               .script = script,
                               .words = words,
                               .how = how,
                               .then = std::move(then),
                               .redirects = 0}));
}

void Cluster::go(const JobPtr& job) {
  NodePtr node;
  {
    const std::lock_guard lock(mutex_);
    node = owners_[job->slot];
  }
  if (node) return send(job, node, false);
  learn([this, job](std::optional<Error> error) {
    if (!error) {
      const std::lock_guard lock(mutex_);
      if (!owners_[job->slot]) error.emplace(Errc::unreachable, "no node serves the key's slot");
    }
    if (error) return job->then({.reply = {}, .failure = std::move(error)});
    go(job);
  });
}

void Cluster::send(const JobPtr& job, const NodePtr& node, bool asking) {
  ClaimStyle style{.fence = KeyNames::fence(texts_[job->slot]),
                   .channel = {},
                   .publish = "SPUBLISH",
                   .in_cluster = true};
  {
    const std::lock_guard lock(mutex_);
    style.channel = node->channel;
  }
  node->server->run(
      job->script, job->words(style), job->how,
      [this, job, node](Outcome outcome) { answered(job, std::move(outcome)); }, asking);
}

void Cluster::answered(const JobPtr& job, Outcome outcome) {
  if (!outcome.reply) {
    // Its successor may know better. Whether to ask again is for the core to say.
    learn([](const std::optional<Error>&) {});
    return job->then(std::move(outcome));
  }
  const auto text = is_error(*outcome.reply) ? text_of(*outcome.reply) : std::string_view{};
  const auto code = error_code(text);
  if (code != "MOVED" && code != "ASK") return job->then(std::move(outcome));
  const auto redirect = parse_redirect(text);
  if (!redirect) return job->then(std::move(outcome));
  if (++job->redirects > kMostRedirects) {
    return job->then(
        {.reply = {},
         .failure = Error(Errc::unreachable,
                          "the cluster's nodes send us to each other, as while a slot is moved",
                          {.resource = {}, .node = name_of(redirect->to), .maybe_held = false})});
  }
  NodePtr node;
  {
    const std::lock_guard lock(mutex_);
    node = node_at(redirect->to);
    if (code == "MOVED") owners_[redirect->slot] = node;
    if (node->channel.empty()) give_channel(*node, redirect->slot);
  }
  if (code == "MOVED") learn([](const std::optional<Error>&) {});  // more than this one has moved
  send(job, node, code == "ASK");
}

void Cluster::listen(std::uint16_t slot, std::function<void()> late) {
  NodePtr node;
  {
    const std::lock_guard lock(mutex_);
    node = owners_[slot];
  }
  if (node) node->server->listen(std::move(late));
}

void Cluster::all(Call /*how*/, std::function<void(Servers, std::optional<Error>)> then) {
  learn([this, then = std::move(then)](std::optional<Error> error) {
    std::set<std::shared_ptr<Server>> servers;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& node : owners_) {
        if (node) servers.insert(node->server);
      }
    }
    if (servers.empty() && !error) error.emplace(Errc::unreachable, "the cluster has no nodes");
    then(Servers(servers.begin(), servers.end()), std::move(error));
  });
}

void Cluster::learn(Learned then) {
  std::vector<std::shared_ptr<Server>> candidates;
  {
    const std::lock_guard lock(mutex_);
    learners_.push_back(std::move(then));
    if (std::exchange(learning_, true)) return;
    for (const auto& seed : seeds_) (void)node_at(seed);
    if (guide_) candidates.push_back(guide_);
    for (const auto& [endpoint, node] : nodes_) {
      if (node->server != guide_) candidates.push_back(node->server);
    }
  }
  ask_for_map(std::move(candidates), 0);
}

void Cluster::ask_for_map(std::vector<std::shared_ptr<Server>> candidates, std::size_t at) {
  const auto server = candidates[at];
  const Call how{.deadline = BootClock::now() + access_.connect_timeout, .caller_waits = false};
  server->send(command({"CLUSTER", "SLOTS"}), how,
               [this, candidates = std::move(candidates), at](const Outcome& outcome) {
                 std::optional<Error> error = outcome.failure;
                 if (outcome.reply && is_error(*outcome.reply)) {
                   error = to_error(text_of(*outcome.reply), candidates[at]->name());
                 } else if (outcome.reply && take_map(*outcome.reply, candidates[at])) {
                   return finish_learning(std::nullopt);
                 }
                 if (at + 1 < candidates.size()) return ask_for_map(candidates, at + 1);
                 if (!error) error.emplace(Errc::unreachable, "no node knows the cluster's slots");
                 finish_learning(error);
               });
}

bool Cluster::take_map(const redisReply& reply, const std::shared_ptr<Server>& asked) {
  std::vector<NodePtr> gone;  // let go of without the lock
  const std::lock_guard lock(mutex_);
  std::vector<NodePtr> owners(kSlots);
  bool any = false;
  for (auto& [first, last, endpoint] : parse_slots(reply)) {
    if (endpoint.host.empty()) endpoint.host = asked->host();
    const auto node = node_at(endpoint);
    for (auto slot = first; slot <= last; ++slot) owners[static_cast<std::size_t>(slot)] = node;
    any = true;
  }
  if (!any) return false;
  owners_ = std::move(owners);
  guide_ = asked;
  const std::set<NodePtr> serving(owners_.begin(), owners_.end());
  for (auto it = nodes_.begin(); it != nodes_.end();) {
    const bool stays = serving.contains(it->second) ||
                       std::find(seeds_.begin(), seeds_.end(), it->first) != seeds_.end();
    if (!stays) gone.push_back(std::move(it->second));
    it = stays ? std::next(it) : nodes_.erase(it);
  }
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    const auto& node = owners_[slot];
    if (!node) continue;
    const bool has =
        node->channel_slot >= 0 && owners_[static_cast<std::size_t>(node->channel_slot)] == node;
    if (!has) give_channel(*node, static_cast<std::uint16_t>(slot));
  }
  return true;
}

void Cluster::finish_learning(const std::optional<Error>& error) {
  std::vector<Learned> learners;
  {
    const std::lock_guard lock(mutex_);
    learning_ = false;
    learners.swap(learners_);
  }
  for (const auto& tell : learners) tell(error);
}

}  // namespace interlock::redis
