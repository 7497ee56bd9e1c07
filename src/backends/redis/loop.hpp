// The loop of a store, with requests for its links.
#pragma once

#include <functional>
#include <memory>

#include "backends/redis/link.hpp"
#include "core/io/loop.hpp"

namespace interlock::redis {

class Loop : public io::Loop {
 public:
  using Handle = std::shared_ptr<Link>;

  // Any thread:
  Handle add(Link::Plan plan) {
    auto link = std::make_shared<Link>(std::move(plan));
    io::Loop::add(link);
    return link;
  }
  void post(const Handle& link, Request request) {
    const bool urgent = request.urgent;
    io::Loop::post([link, request = std::move(request)](
                       TimePoint, Finished&) mutable { link->add(std::move(request)); },
                   urgent);
  }
  void change(const Handle& link, std::function<void(Link&, TimePoint, Finished&)> what) {
    io::Loop::post([link, what = std::move(what)](
                       TimePoint now, Finished& finished) { what(*link, now, finished); },
                   false);
  }
};

}  // namespace interlock::redis
