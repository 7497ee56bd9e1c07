// Lists resources, then looks at each of them: a chain of requests that keeps itself alive.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/redis/realm.hpp"

namespace interlock::redis {

class Inspection : public std::enable_shared_from_this<Inspection> {
 public:
  Inspection(Realm& realm, const KeyNames& names, Query query, Call how, Report report)
      : realm_(realm),
        names_(names),
        query_(std::move(query)),
        how_(how),
        report_(std::move(report)) {}

  void start();

 private:
  void scan(const std::shared_ptr<Server>& server, std::string_view cursor);
  void scanned(const std::shared_ptr<Server>& server, const Outcome& outcome);
  void look();
  void looked(const Outcome& outcome, const std::string& name);
  /// True when this was the last of `left_` steps and nothing failed.
  bool step_done();
  void fail(const Outcome& outcome);

  Realm& realm_;
  const KeyNames& names_;
  const Query query_;
  const Call how_;
  const Report report_;
  std::mutex mutex_;
  std::set<std::string> found_;
  std::size_t left_ = 0;
  bool over_ = false;
  Snapshot snapshot_;
};

}  // namespace interlock::redis
