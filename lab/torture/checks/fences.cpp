#include <algorithm>

#include "checks/checks.hpp"

namespace torture::checks {

namespace {

using Grants = std::vector<const Belief*>;

bool same_holder(const Belief& a, const Belief& b) {
  if (!a.identity.empty() && a.identity == b.identity) return true;
  return !a.owner.empty() && a.owner == b.owner;
}

std::string describe_grant(const Belief& grant) {
  return std::to_string(*grant.fence) + " of lease " + grant.lease;
}

void rise(const std::string& resource, Grants grants, Finding& finding) {
  auto told = grants;
  std::sort(grants.begin(), grants.end(), [](auto* a, auto* b) { return a->asked < b->asked; });
  std::sort(told.begin(), told.end(), [](auto* a, auto* b) { return a->from < b->from; });
  const Belief* highest = nullptr;
  auto next = told.begin();
  for (const auto* grant : grants) {
    for (; next != told.end() && (*next)->from < grant->asked; ++next) {
      if (highest == nullptr || *(*next)->fence > *highest->fence) highest = *next;
    }
    if (highest == nullptr || *highest->fence < *grant->fence) continue;
    // Equal ones are the other check's.
    if (*highest->fence == *grant->fence) continue;
    finding.violations.push_back(
        {"the fence of " + resource + " went back: " + describe_grant(*highest) +
             " was granted before " + describe_grant(*grant) + " was asked for",
         part_of({highest->holds, grant->holds})});
  }
}

void unique(const std::string& resource, const Grants& grants, Finding& finding) {
  std::map<std::uint64_t, const Belief*> first;
  for (const auto* grant : grants) {
    const auto [at, is_new] = first.emplace(*grant->fence, grant);
    if (is_new || same_holder(*at->second, *grant)) continue;
    finding.violations.push_back({"two grants of " + resource +
                                      " have one fence: " + describe_grant(*at->second) + " and " +
                                      describe_grant(*grant),
                                  part_of({at->second->holds, grant->holds})});
  }
}

}  // namespace

Finding fences(const Index& index) {
  Finding finding{.name = "fences"};
  for (const auto& [resource, beliefs] : index.beliefs()) {
    Grants grants;
    for (const auto& belief : beliefs) {
      if (belief.part.mode == Mode::exclusive && belief.fence && !belief.adopted) {
        grants.push_back(&belief);
      }
    }
    finding.looked_at += grants.size();
    rise(resource, grants, finding);
    unique(resource, grants, finding);
  }
  return finding;
}

}  // namespace torture::checks
