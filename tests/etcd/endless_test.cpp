// What listens at the address says more than anybody wants to know. Expected: an error in time, and hardly any memory.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "etcd/etcd_test.hpp"
#include "servers/endless_server.hpp"

namespace interlock::etcd_tests {
namespace {

/// Answers each call with the same bytes, which are one part again and again.
class Talker {
 public:
  Talker(std::string part, std::size_t times) : service_(std::move(part), times) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  Talker(const Talker&) = delete;
  Talker& operator=(const Talker&) = delete;
  ~Talker() { server_->Shutdown(std::chrono::system_clock::now()); }

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  class Answer final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Answer(const std::vector<grpc::Slice>& parts) : bytes_(parts.data(), parts.size()) {
      StartWriteAndFinish(&bytes_, {}, grpc::Status::OK);
    }
    void OnDone() override { delete this; }  // as gRPC wants it

   private:
    grpc::ByteBuffer bytes_;
  };
  class Service final : public grpc::CallbackGenericService {
   public:
    Service(std::string part, std::size_t times)
        : part_(std::move(part)),
          parts_(times, grpc::Slice(part_.data(), part_.size(), grpc::Slice::STATIC_SLICE)) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
      return new Answer(parts_);
    }

   private:
    const std::string part_;
    const std::vector<grpc::Slice> parts_;
  };

  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

// A field that is text or a message, with its length in a single byte.
std::string field(int number, const std::string& body) {
  return {std::string{static_cast<char>(number << 3 | 2), static_cast<char>(body.size())} + body};
}

// Expected: an error in time, and no crash.
TEST(Hostile, AnswersThatDoNotFitAreAnError) {
  const std::string succeeded("\x10\x01", 2);
  for (const auto& answer :
       {std::string(), succeeded, field(3, ""), field(3, field(1, "")), field(3, field(4, "")),
        succeeded + field(3, field(3, "")) + field(3, field(4, ""))}) {
    const Talker talker(answer, answer.empty() ? 0 : 1);
    const auto usage = servers::measure({INTERLOCK_BIN, "--url", "etcd://" + talker.address(),
                                         "run", "-w", "300ms", "job", "--", "true"});
    EXPECT_EQ(usage.status, 69) << usage.output;
    EXPECT_LT(usage.took, 10s);
  }
}

struct Case {
  const char* name;
  std::string element;
  std::size_t mebibytes;
};

void PrintTo(const Case& what, std::ostream* out) { *out << what.name; }

class Endless : public testing::TestWithParam<Case> {};

TEST_P(Endless, AnswerIsAnErrorInTimeAndLittleMemory) {
  const auto& what = GetParam();
  constexpr std::size_t kMebibyte = std::size_t{1} << 20U;
  const Talker talker(repeated(what.element, kMebibyte / what.element.size()), what.mebibytes);
  const auto usage = servers::measure({INTERLOCK_BIN, "--url", "etcd://" + talker.address(), "run",
                                       "-w", "1s", "job", "--", "true"});
  servers::expect_refused(usage, talker.address());
}

INSTANTIATE_TEST_SUITE_P(
    Etcd, Endless,
    testing::Values(Case{"Bytes", field(15, "a"), 300}, Case{"TooManyBytes", field(15, "a"), 7},
                    Case{"Responses", field(3, ""), 3},
                    Case{"Keys", field(3, field(1, repeated(field(2, ""), 100))), 3},
                    Case{"Transactions", field(3, field(4, field(3, ""))), 3},
                    Case{"Nonsense", "\xff", 1}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace interlock::etcd_tests
