// What a program of the tests tells the test that started it.
#pragma once

#include <cstdio>
#include <string>

/// One line, at once.
inline void say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}
