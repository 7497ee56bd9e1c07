// Records as the programs of a version have written them: tests/formats.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "interlock/interlock.hpp"

namespace interlock::testing_support {

inline std::string format_file(const std::string& name) {
  std::ifstream file(std::string(INTERLOCK_FORMATS "/") + name);
  std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

inline std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  std::size_t found = 0;
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    ++found;
  }
  EXPECT_GT(found, 0U) << from;
  return text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Looks and acquires, also of readers: each is refused, with all of these words. An acquire's error names the lock.
inline void expect_format_refused(const std::string& url, const std::string& name,
                                  const std::vector<std::string>& words, bool has_slots = true) {
  const auto expect = [&](auto use, const std::string& named = {}) {
    try {
      use(connect(url));
      ADD_FAILURE() << "it worked";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::refused) << error.what();
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
      for (const auto& word : words)
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  expect([&](const Client& client) { (void)client.inspect({.resources = {name}}); });
  expect([&](const Client& client) { (void)client.inspect(); });
  expect([&](const Client& client) { (void)Mutex(client, name).try_acquire(); }, name);
  expect(
      [&](const Client& client) {
        (void)Mutex(client, name).try_acquire_for(std::chrono::seconds(2));
      },
      name);
  expect([&](const Client& client) { (void)RwLock(client, name).try_read(); }, name);
  expect(
      [&](const Client& client) {
        (void)RwLock(client, name).try_read_for(std::chrono::seconds(2));
      },
      name);
  if (!has_slots) return;
  expect([&](const Client& client) { (void)Semaphore(client, name, 2).try_acquire(); }, name);
}

}  // namespace interlock::testing_support
