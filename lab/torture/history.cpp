#include "history.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace torture {

namespace fs = std::filesystem;

namespace {

/// "worker-2.0.log" is of "2.0". A command that a worker runs stands for itself: it outlives its worker.
std::string writer_of(const fs::path& file) {
  const auto stem = file.stem().string();
  if (stem.starts_with("worker-")) return stem.substr(7);
  return stem.starts_with("command-") ? stem : "";
}

/// A line that its writer did not finish is left out; any other that can't be read is an error.
void read_log(const fs::path& file, std::vector<Event>& events) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + " can't be read");
  const auto writer = writer_of(file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (in.eof()) break;  // no newline
    auto fields = Json::parse(line, nullptr, false);
    if (!fields.is_object() || !fields.contains("t") || !fields.contains("k")) {
      throw std::runtime_error(file.string() + ":" + std::to_string(number) +
                               " is no line of a history: " + line.substr(0, 200));
    }
    Event event;
    event.t = fields.at("t").get<std::int64_t>();
    event.k = fields.at("k").get<std::string>();
    event.worker = writer;
    fields.erase("t");
    fields.erase("k");
    event.fields = std::move(fields);
    events.push_back(std::move(event));
  }
}

}  // namespace

Log::Log(const fs::path& path)
    : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (fd_ < 0) {
    throw std::system_error(errno, std::generic_category(), "the history " + path.string());
  }
}

Log::~Log() { ::close(fd_); }

void Log::add(std::string_view kind, Json fields) const {
  if (!fields.contains("t")) fields["t"] = now();
  fields["k"] = kind;
  // Errors of the system may quote bytes of any kind.
  auto line = fields.dump(-1, ' ', false, Json::error_handler_t::replace);
  line += '\n';
  ssize_t wrote = 0;
  do {
    wrote = ::write(fd_, line.data(), line.size());
  } while (wrote < 0 && errno == EINTR);
  if (wrote != static_cast<ssize_t>(line.size())) {
    throw std::system_error(wrote < 0 ? errno : ENOSPC, std::generic_category(),
                            "a line of the history can't be written");
  }
}

std::vector<Event> read_history(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".log" && entry.is_regular_file())
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Event> events;
  for (const auto& file : files) read_log(file, events);
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.t < b.t; });
  return events;
}

}  // namespace torture
