// Which store a Locking uses that was given no client.
#include <filesystem>

#include "core/text.hpp"
#include "interlock/config.hpp"
#include "interlock/locking.hpp"

namespace interlock {

namespace {

constexpr const char* kLockFileName = ".interlock";

[[noreturn]] void refuse_store(const std::string& why) {
  throw Error(Errc::invalid, "Locking: " + why);
}

bool names_a_redis(const LockingStore& store) {
  return !store.host.empty() || store.port || store.db || !store.password.empty();
}

bool names_files(const LockingStore& store) {
  return !store.working_dir.empty() || !store.lock_file_name.empty();
}

std::string backend_of(const LockingStore& store) {
  const bool redis = names_a_redis(store);
  const bool files = names_files(store);
  if (redis && files)
    refuse_store("host, port, db and password are for redis, and the files are not");
  if (store.backend.empty()) return redis ? "redis" : files ? "file" : "";
  if (redis && store.backend != "redis")
    refuse_store(
        "host, port, db and password go with the backend \"redis\"; in a URL, write them into it");
  if (files && store.backend != "file")
    refuse_store("working_dir and lock_file_name go with the backend \"file\"");
  return store.backend;
}

std::string file_url(const LockingStore& store) {
  const auto name = store.lock_file_name.empty() ? kLockFileName : store.lock_file_name;
  if (store.working_dir.empty()) refuse_store("a lock_file_name needs a working_dir");
  if (name == "." || name == ".." || name.find('/') != std::string::npos)
    refuse_store("lock_file_name is a name in working_dir, and no path");
  std::string url = "file://";
  for (const auto& part : std::filesystem::absolute(store.working_dir).lexically_normal() / name) {
    if (part != "/" && !part.empty()) url += "/" + percent_encode(part.string());
  }
  return url;
}

Config settings(const LockingStore& store) {
  Presets presets;
  const auto backend = backend_of(store);
  if (names_files(store)) {
    presets.url = file_url(store);
  } else if (!backend.empty()) {
    const bool is_url = backend.find(':') != std::string::npos;
    (is_url ? presets.url : presets.backend) = backend;
  }
  presets.redis = {store.host, store.port, store.db, store.password};
  return Config::load(presets);
}

}  // namespace

Locking::Locking(std::string identity, const LockingStore& store, LockingOptions options,
                 ClientOptions client)
    : Locking(std::move(identity), connect(settings(store), std::move(client)), options) {}

Locking::Locking(std::string identity, std::string_view backend, ClientOptions client)
    : Locking(std::move(identity), LockingStore{.backend = std::string(backend)}, {},
              std::move(client)) {}

}  // namespace interlock
