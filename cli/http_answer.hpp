// HTTP/1.1 as far as a monitor needs it: from what a peer has sent so far to the answer. No sockets.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace cli {

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

/// Makes the page of a path, which begins with a slash and has no query.
using HttpHandler = std::function<HttpResponse(const std::string& path)>;

/// The whole answer to GET and HEAD, with its head; a refusal if the request is too long or makes no sense. Nothing if there
/// is more to come.
std::optional<std::string> http_answer(const std::string& received, const HttpHandler& handler);

/// An answer that is only a status.
std::string http_refusal(int status);

}  // namespace cli
