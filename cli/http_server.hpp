// A small HTTP/1.1 server for pages that a monitor fetches: GET and HEAD, one thread, one answer for
// each connection. Whoever is slow, or sends nonsense, holds up nobody else.
#pragma once

#include <chrono>
#include <list>
#include <string>

#include "descriptor.hpp"
#include "http_answer.hpp"

namespace cli {

class HttpServer {
 public:
  /// Listens at once. `where`: "[HOST:]PORT", 127.0.0.1 if there is no host; port 0 is any that is
  /// free. Throws UsageError for what is no address, and Failure if it can't be had.
  HttpServer(const std::string& where, HttpHandler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:7450".
  [[nodiscard]] const std::string& url() const { return url_; }

  /// Serves until this descriptor can be read.
  void run(int until);

 private:
  using Clock = std::chrono::steady_clock;

  enum class Stage { reading, writing, draining };
  struct Peer {
    Descriptor fd;
    Clock::time_point deadline;
    Stage stage = Stage::reading;
    std::string request{};
    std::string response{};
  };

  void accept();
  void make_room();
  // Each is false when the peer is done with.
  bool serve(Peer& peer);
  bool read(Peer& peer);
  bool write(Peer& peer);
  static bool drain(Peer& peer);
  [[nodiscard]] std::size_t unsent() const;

  HttpHandler handler_;
  Descriptor listener_;
  std::string url_;
  std::list<Peer> peers_;             // the oldest first
  Clock::time_point accepts_from_{};  // later, after the system had no room for another one
};

}  // namespace cli
