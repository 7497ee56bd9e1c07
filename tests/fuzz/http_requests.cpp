// Requests to `interlock serve` and the metrics, from anybody who reaches the port.
#include "fuzz.hpp"
#include "http_answer.hpp"

void fuzz::run(std::string_view input) {
  const std::string received(input);
  std::optional<std::string> asked;
  const auto answer = cli::http_answer(received, [&](const std::string& path) {
    require(path.starts_with('/') && path.find('?') == std::string::npos, "a path is a path");
    require(!asked, "one page is made for one request");
    asked = path;
    return cli::HttpResponse{.body = "page\n"};
  });
  if (!answer) {
    require(received.size() <= 8192, "what has no end is refused");
    return;
  }
  const auto head = answer->substr(0, answer->find("\r\n\r\n"));
  require(head.size() < answer->size() && head.starts_with("HTTP/1.1 "), "an answer has a head");
  require(head.starts_with("HTTP/1.1 200 ") == asked.has_value(), "a page is made, or refused");
  const auto body = answer->substr(head.size() + 4);
  const bool has_length =
      head.find("\r\nContent-Length: " + std::to_string(body.size()) + "\r\n") != head.npos;
  require(has_length || received.starts_with("HEAD") || body.empty(), "an answer has its length");
  require(head.find_first_of('\n') == head.find("\r\n") + 1, "lines end as they should");
  for (std::size_t at = 0; at < received.size(); at += received.size() / 7 + 1) {
    const auto sooner = cli::http_answer(received.substr(0, at), [](const std::string&) {
      return cli::HttpResponse{.body = "page\n"};
    });
    require(!sooner || received.size() > 8192 || *sooner == *answer,
            "what comes behind a request does not change its answer");
  }
}
