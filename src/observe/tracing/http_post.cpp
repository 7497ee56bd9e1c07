#include "observe/tracing/http_post.hpp"

#include <curl/curl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "interlock/error.hpp"

namespace interlock::observe {

namespace {

constexpr std::size_t kLongestBody = 64UL * 1024;

struct Headers {
  curl_slist* list = nullptr;
  Headers() = default;
  Headers(const Headers&) = delete;
  Headers& operator=(const Headers&) = delete;
  ~Headers() { curl_slist_free_all(list); }
  void add(const std::string& line) {
    if (auto* longer = curl_slist_append(list, line.c_str())) list = longer;
  }
};

std::size_t keep_beginning(const char* data, std::size_t size, std::size_t count, void* to) {
  auto& body = *static_cast<std::string*>(to);
  body.append(data, std::min(size * count, kLongestBody - body.size()));
  return size * count;
}

int ask_whether_to_abandon(void* question, curl_off_t /*to*/, curl_off_t /*down*/,
                           curl_off_t /*upto*/, curl_off_t /*up*/) {
  return (*static_cast<const std::function<bool()>*>(question))() ? 1 : 0;
}

// Not for the programs that this one may start.
curl_socket_t open_socket(void* /*unused*/, curlsocktype /*purpose*/, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace

class HttpPost::Handle {
 public:
  Handle() : curl(curl_easy_init()) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { curl_easy_cleanup(curl); }

  CURL* curl;
  Headers headers;
  std::array<char, CURL_ERROR_SIZE> error{};
};

HttpPost::HttpPost(const std::string& url, const std::map<std::string, std::string>& headers) {
  // Once for the process; threads that come second wait here.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  handle_ = std::make_unique<Handle>();
  auto* curl = handle_->curl;
  if (ready != CURLE_OK || curl == nullptr) {
    throw Error(Errc::refused, "libcurl can't be used, so no traces can be sent");
  }
  handle_->headers.add("Content-Type: application/json");
  handle_->headers.add("Expect:");  // no asking beforehand
  for (const auto& [name, value] : headers) {
    auto line = name;
    handle_->headers.add(line.append(": ").append(value));
  }
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, handle_->headers.list);
  curl_easy_setopt(curl, CURLOPT_POST, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // not for a name server that hangs
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "interlock");
  curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep_beginning);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_whether_to_abandon);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, handle_->error.data());
}

HttpPost::~HttpPost() = default;

HttpPost::Result HttpPost::send(const std::string& body, Duration timeout,
                                const std::function<bool()>& abandon) {
  auto* curl = handle_->curl;
  Result result;
  handle_->error.front() = '\0';
  const auto limit = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(limit));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &result.body);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &abandon);
  const auto code = curl_easy_perform(curl);
  if (code == CURLE_OK) {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &result.status);
  } else {
    result.error =
        handle_->error.front() != '\0' ? handle_->error.data() : curl_easy_strerror(code);
  }
  return result;
}

}  // namespace interlock::observe
