// Preloaded into a program: while the file $TORTURE_NAMES exists, no name server answers it. Addresses are no names, and
// need none. As with a name server that is really silent, the resolver gives up in the end.
#include <dlfcn.h>
#include <netdb.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

// What the system's resolver takes with its defaults: 5 s for each of two tries, for each of two kinds of addresses.
constexpr int kPatience = 20'000;
constexpr int kLook = 10;  // ms

bool is_silent() {
  const auto* path = std::getenv("TORTURE_NAMES");
  return path != nullptr && ::access(path, F_OK) == 0;
}

}  // namespace

extern "C" {

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  using Real = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Real>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  addrinfo numeric{};
  if (hints != nullptr) numeric = *hints;
  numeric.ai_flags |= AI_NUMERICHOST;
  if (const int result = real(host, service, &numeric, found); result != EAI_NONAME) return result;
  if (hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0) return EAI_NONAME;
  for (int waited = 0; is_silent(); waited += kLook) {
    if (waited >= kPatience) return EAI_AGAIN;
    const timespec look{.tv_sec = 0, .tv_nsec = kLook * 1'000'000L};
    ::nanosleep(&look, nullptr);
  }
  return real(host, service, hints, found);
}

}  // extern "C"
