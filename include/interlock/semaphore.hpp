// At most N at once.
#pragma once

#include "interlock/acquirer.hpp"

namespace interlock {

/// `Semaphore(client, "api-calls", 5)` lets five in. `weight` of them can be taken at once, all or
/// nothing. Fair: a big request is not starved by small ones behind it. All clients have to agree
/// on the capacity: while it is in use, another capacity is refused with Error (wrong_capacity).
class Semaphore : public Acquirer {
 public:
  Semaphore(Client client, std::string name, std::uint32_t capacity, Options options = {},
            std::uint32_t weight = 1)
      : Acquirer(std::move(client),
                 {Part{.resource = std::move(name),
                       .mode = Mode::slots,
                       .slots = weight,
                       .capacity = capacity}},
                 std::move(options)) {}
};

}  // namespace interlock
