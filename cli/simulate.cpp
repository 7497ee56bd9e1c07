// interlock simulate: questions that are answered by trying.
#include "command.hpp"
#include "scale/scale.hpp"

namespace cli {

int simulate(const Arguments& arguments) {
  auto rest = arguments;
  const auto word = std::find(rest.before.begin(), rest.before.end(), "scale");
  if (word == rest.before.end())
    throw UsageError("what? interlock simulate scale (see: interlock simulate scale --help)");
  rest.before.erase(word);
  return simulate_scale(rest);
}

}  // namespace cli
