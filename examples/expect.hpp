// The examples check themselves: the first thing that is not as it should be ends the program.
#pragma once

#include <cstdlib>
#include <iostream>

inline void expect(bool as_it_should_be, const char* what) {
  if (as_it_should_be) return;
  std::cerr << "not so: " << what << '\n';
  std::exit(1);
}
