// laster URL: tries to get a lock, and ends; then with 0 if OpenSSL is still of use when nearly all is
// gone, as a release that goes on in the background may need it.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "interlock/interlock.hpp"

namespace {

void look() {
  using Initialize = int (*)(std::uint64_t, const void*);
  const auto initialize = reinterpret_cast<Initialize>(dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto"));
  ::_exit(initialize != nullptr && initialize(0, nullptr) == 1 ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || std::atexit(look) != 0) return 64;
  static_cast<void>(interlock::Mutex(interlock::connect(argv[1]), "r").try_acquire());
  return 0;
}
