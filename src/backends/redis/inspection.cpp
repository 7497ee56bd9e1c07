#include "backends/redis/inspection.hpp"

#include <algorithm>
#include <utility>

namespace interlock::redis {

void Inspection::start() {
  if (!query_.resources.empty()) {
    found_.insert(query_.resources.begin(), query_.resources.end());
    return look();
  }
  realm_.all(how_, [self = shared_from_this()](const Realm::Servers& servers,
                                               const std::optional<Error>& error) {
    if (error) return self->fail({.reply = {}, .failure = error});
    self->left_ = servers.size();
    for (const auto& server : servers) self->scan(server, "0");
  });
}

void Inspection::scan(const std::shared_ptr<Server>& server, std::string_view cursor) {
  server->send(command({"SCAN", cursor, "MATCH", names_.pattern(query_.prefix), "COUNT", "1000"}),
               how_, [self = shared_from_this(), server](const Outcome& outcome) {
                 self->scanned(server, outcome);
               });
}

void Inspection::scanned(const std::shared_ptr<Server>& server, const Outcome& outcome) {
  if (!outcome.reply || is_error(*outcome.reply)) return fail(outcome);
  const auto words = elements_of(*outcome.reply);
  if (words.size() != 2) return fail(outcome);
  {
    const std::lock_guard lock(mutex_);
    for (const auto* key : elements_of(*words[1])) {
      auto resource = names_.resource_of(text_of(*key));
      if (resource && resource->starts_with(query_.prefix)) found_.insert(std::move(*resource));
    }
  }
  const auto cursor = text_of(*words[0]);
  if (cursor != "0") return scan(server, cursor);
  if (step_done()) look();
}

void Inspection::look() {
  std::vector<std::string> names;
  for (const auto& resource : found_) {
    try {
      check_resource(resource);
      (void)names_.of(resource);
      names.push_back(resource);
    } catch (const Error&) {  // not one of ours
    }
  }
  left_ = names.size();
  if (names.empty()) return report_(std::move(snapshot_));
  for (const auto& name : names) {
    realm_.run(
        slot_of(names_.of(name).lock), Scripts::all().inspect,
        [self = shared_from_this(), name](const ClaimStyle&) {
          return inspect_words(name, self->names_);
        },
        how_,
        [self = shared_from_this(), name](const Outcome& outcome) { self->looked(outcome, name); });
  }
}

void Inspection::looked(const Outcome& outcome, const std::string& name) {
  if (!outcome.reply) return fail(outcome);
  if (is_error(*outcome.reply)) {
    if (error_code(text_of(*outcome.reply)) != "WRONGTYPE") return fail(outcome);
  } else {
    // Without a prefix, any key of anybody looks like a lock of another program.
    try {
      auto state =
          to_state(*outcome.reply, name, !query_.resources.empty() || !names_.prefix().empty());
      const std::lock_guard lock(mutex_);
      if (!state.holders.empty() || !state.waiters.empty())
        snapshot_.resources.push_back(std::move(state));
    } catch (const Error& error) {  // a record of another format
      return fail({.reply = {}, .failure = error.about(name)});
    }
  }
  if (!step_done()) return;
  std::sort(snapshot_.resources.begin(), snapshot_.resources.end(),
            [](const auto& a, const auto& b) { return a.resource < b.resource; });
  report_(std::move(snapshot_));
}

bool Inspection::step_done() {
  const std::lock_guard lock(mutex_);
  return --left_ == 0 && !over_;
}

void Inspection::fail(const Outcome& outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(over_, true)) return;
  }
  report_({.resources = {},
           .why = outcome.reply ? to_error(text_of(*outcome.reply), "", Scripts::all().inspect.text)
                                : *outcome.failure});
}

}  // namespace interlock::redis
