#include "torture/topology.hpp"

#include "torture/topologies/kinds.hpp"

namespace torture {

const std::vector<TopologyKind>& topologies() {
  static const auto all = [] {
    std::vector<TopologyKind> list;
    for (const auto& family : {
#ifdef TORTURE_FILE
             file_kinds(),
#endif
#ifdef TORTURE_REDIS
             redis_kinds(), sentinel_kinds(), cluster_kinds(), redlock_kinds(),
#endif
#ifdef TORTURE_POSTGRES
             postgres_kinds(), standby_kinds(),
#endif
#ifdef TORTURE_ETCD
             etcd_kinds(), etcd_cluster_kinds(),
#endif
#ifdef TORTURE_MEMORY
             memory_kinds(),
#endif
             Kinds()}) {
      list.insert(list.end(), family.begin(), family.end());
    }
    return list;
  }();
  return all;
}

std::filesystem::path preload_library() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {};
#else
  return TORTURE_PRELOAD;
#endif
}

interlock::Client connect(const std::string& url, interlock::ClientOptions options) {
#ifdef TORTURE_MEMORY
  if (url.starts_with(kChaosScheme))
    return interlock::Client(open_chaos(url.substr(kChaosScheme.size())), std::move(options));
#endif
  return interlock::connect(url, std::move(options));
}

}  // namespace torture
