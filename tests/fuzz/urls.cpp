// URLs of stores, as people and settings write them: what is shown of them has no password in it.
#include "fuzz.hpp"
#include "interlock/backend.hpp"

namespace {

using interlock::Url;

// The same text with kSecret in the middle of the password, or of what may have been meant as one:
// scheme://user:password@host.
std::string with_secret(std::string_view text) {
  const auto begin = text.find("://");
  const auto end = text.rfind('@');
  if (begin == text.npos || end == text.npos || end < begin + 3) return {};
  const auto colon = text.find(':', begin + 3);
  if (colon >= end || text.find(fuzz::kSecret) != text.npos) return {};
  std::string changed(text);
  return changed.insert(colon + 1 + (end - colon - 1) / 2, fuzz::kSecret);
}

}  // namespace

void fuzz::run(std::string_view input) {
  if (const auto secret = with_secret(input); !secret.empty())
    (void)accepted([&] { return Url::parse(secret); }, kSecret);
  const auto url = accepted([&] { return Url::parse(input); });
  if (!url) return;
  const auto shown = url->to_string();
  // Not the one of the input, which may be what stands around it, too.
  if (!url->password.empty() && input.find(kSecret) == input.npos) {
    auto secret = *url;
    secret.password = kSecret;
    require(secret.to_string().find(kSecret) == std::string::npos, "a password is not shown");
  }
  require(url->to_string() == shown, "a URL has one text");
  // What is shown is a URL again, unless nothing of it may be shown.
  if (shown.find("***") == shown.npos && url->path.find_first_of("?%") == std::string::npos) {
    const auto again = accepted([&] { return Url::parse(shown); });
    require(again && again->to_string() == shown, "the text of a URL is a URL with that text");
  }
  (void)accepted([&] {
    url->expect_all_taken({"prefix", "timeout"});
    return true;
  });
}
