// flyer URL DIRECTORY CALLERS TIME: says "ready"; told to, so many threads want one value of the cache
// in DIRECTORY, which takes TIME to make; then says how many of them got it.
#include <atomic>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "file_cache.hpp"
#include "interlock/interlock.hpp"

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  const interlock::testing_support::FileCache cache(argv[2]);
  const auto time = interlock::parse_duration(argv[4]);
  interlock::SingleFlight flight(interlock::connect(argv[1]), cache.functions(),
                                 [&](const std::string& key) {
                                   cache.count_run();
                                   std::cout << "generates" << std::endl;
                                   std::this_thread::sleep_for(time);
                                   return "value of " + key;
                                 });
  std::cout << "ready" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  std::atomic<int> got = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = std::stoi(argv[3]); i > 0; --i)
      callers.emplace_back([&] { got += flight.get("k") == "value of k" ? 1 : 0; });
  }
  std::cout << "done " << got << std::endl;
}
