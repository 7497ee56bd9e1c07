#include "store_view.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "interlock/backend.hpp"
#include "interlock/stores.hpp"

namespace cli {

namespace {

/// The directory of a file store that does not exist; empty: it does, or this is another store.
std::string missing_directory(const std::string& store) {
  const auto url = interlock::Url::parse(store);
  struct stat info {};
  // What makes no sense as a file store is told when it is opened.
  if (url.scheme != "file" || !url.path.starts_with('/')) return "";
  if (!url.authority.empty() && url.authority != "localhost") return "";
  return ::lstat(url.path.c_str(), &info) != 0 && errno == ENOENT ? url.path : "";
}

}  // namespace

bool not_made_yet(const Common& common) {
  const auto store = store_url(common);
  if (missing_directory(store).empty()) return false;
  if (store == interlock::user_store_url()) interlock::detail::check_user_store();
  try {
    interlock::detail::check_file_store_can_be_made(interlock::Url::parse(store));
  } catch (const interlock::Error& error) {
    throw of_origin(error, common);
  }
  return true;
}

void check_exists(const Common& common) {
  const auto store = store_url(common);
  const auto missing = missing_directory(store);
  if (missing.empty() || store == interlock::user_store_url()) return;
  throw interlock::Error(interlock::Errc::refused,
                         "there is no store: the directory " + missing +
                             " does not exist; nothing has been locked there yet, or the path is "
                             "mistyped",
                         {.resource = {}, .node = shown_url(common, store), .maybe_held = false});
}

StoreView::StoreView(const Common& common, std::shared_ptr<interlock::Observer> observer)
    : common_(common), observer_(std::move(observer)) {
  check_exists(common_);
  if (const auto* opened = client()) {
    traits_ = opened->traits();
  } else {
    traits_.name = "file";
    traits_.where = store_url(common_);
  }
}

interlock::Snapshot StoreView::inspect(const interlock::Query& query) {
  const auto* opened = client();
  return opened != nullptr ? opened->inspect(query) : interlock::Snapshot{};
}

const interlock::Client* StoreView::client() {
  if (!client_) {
    const auto store = store_url(common_);
    if (store == interlock::user_store_url() && !missing_directory(store).empty()) {
      interlock::detail::check_user_store();
      return nullptr;
    }
    client_.emplace(open_store(common_, observer_));
  }
  return &*client_;
}

}  // namespace cli
