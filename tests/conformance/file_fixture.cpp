#include <filesystem>

#include "conformance/suite.hpp"
#include "conformance/temporary_directory.hpp"

namespace interlock::conformance {
namespace {

class FileFixture final : public StoreFixture {
 public:
  std::unique_ptr<Backend> open() override { return file_store(directory_.path() / "locks"); }

 private:
  TemporaryDirectory directory_;
};

[[maybe_unused]] const bool kRegistered = add_store<FileFixture>("file");

}  // namespace
}  // namespace interlock::conformance
