#include "http_answer.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace cli {

namespace {

constexpr std::size_t kLongestRequest = 8192;

const char* phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

std::string to_text(const HttpResponse& response, bool head_only) {
  return "HTTP/1.1 " + std::to_string(response.status) + " " + phrase(response.status) +
         "\r\nContent-Type: " + response.type +
         "\r\nContent-Length: " + std::to_string(response.body.size()) +
         (response.status == 405 ? "\r\nAllow: GET, HEAD" : "") +
         "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n" +
         (head_only ? "" : response.body);
}

// Where the head of a request ends; nothing if there is more to come.
std::size_t end_of_head(const std::string& request) {
  return std::min(request.find("\r\n\r\n"), request.find("\n\n"));
}

std::string answer_head(const std::string& head, const HttpHandler& handler) {
  std::istringstream line(head.substr(0, head.find_first_of("\r\n")));
  std::string method;
  std::string target;
  std::string version;
  std::string more;
  line >> method >> target >> version;
  if (const std::string_view scheme = "http://"; target.starts_with(scheme)) {  // as for a proxy
    const auto path = target.find('/', scheme.size());
    target = path == std::string::npos ? "/" : target.substr(path);
  }
  if (line >> more || !version.starts_with("HTTP/1.") || !target.starts_with('/')) {
    return http_refusal(400);
  }
  if (method != "GET" && method != "HEAD") return http_refusal(405);
  return to_text(handler(target.substr(0, target.find('?'))), method == "HEAD");
}

}  // namespace

std::string http_refusal(int status) {
  return to_text({.status = status, .body = std::string(phrase(status)) + "\n"}, false);
}

std::optional<std::string> http_answer(const std::string& received, const HttpHandler& handler) {
  const auto end = end_of_head(received);
  if (end != std::string::npos) return answer_head(received.substr(0, end), handler);
  if (received.size() > kLongestRequest) return http_refusal(431);
  return std::nullopt;
}

}  // namespace cli
