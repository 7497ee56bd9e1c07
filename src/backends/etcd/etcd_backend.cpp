// etcd URLs.
#include "backends/etcd/store.hpp"

namespace interlock::stores {

namespace {

std::unique_ptr<Backend> open_etcd(Url url, const std::shared_ptr<Clock>& /*each client its own*/) {
  return std::make_unique<etcd::Store>(etcd::Settings::take_from(std::move(url)));
}

}  // namespace

StoreEntry etcd() {
  return {.name = "etcd",
          .schemes = {"etcd", "etcds"},
          .example = "etcd://localhost:2379",
          .open = &open_etcd};
}

}  // namespace interlock::stores
