// Messages to a node of a Redlock as words of its scripts, and its replies as votes.
#pragma once

#include <string>
#include <vector>

#include "backends/redis/redlock_votes.hpp"
#include "backends/redis/scripts.hpp"

namespace interlock::redis {

/// The scripts that only a Redlock has.
struct RedlockScripts {
  Script acquire;
  Script confirm;
  Script yield;
  Script renew;
  Script heal;
  Script release;
  Script mend;

  static const RedlockScripts& all();
  /// All that a node is asked to run, the look at a resource included.
  [[nodiscard]] std::vector<const Script*> list() const;
};

const Script& script_of(Message::Kind kind);

/// What stands after the script's name. That of `acquire` ends with as many zeros as a run_id of the server has
/// digits, see Server::send_stamped.
Words words_of(const Message& message, const KeyNames& names, const ClaimStyle& style);

/// `node`: its name.
Vote read_vote(const Message& message, const Outcome& outcome, const std::string& node);

}  // namespace interlock::redis
