#include "conformance/suite.hpp"

namespace interlock::conformance {
namespace {

class MemoryFixture final : public StoreFixture {
 public:
  std::unique_ptr<Backend> open() override { return store_.open(); }

 private:
  MemoryStore store_;
};

[[maybe_unused]] const bool kRegistered = add_store<MemoryFixture>("memory");

}  // namespace
}  // namespace interlock::conformance
