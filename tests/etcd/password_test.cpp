// A server that repeats the password or the token wherever its words may be shown. Expected: the error says all but that.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "etcd/etcd_test.hpp"
#include "servers/endless_server.hpp"

namespace interlock::etcd_tests {
namespace {

using servers::Repeated;

/// Lets everybody in with this token, or nobody if there is none; refuses all else, in these words.
class Repeats {
 public:
  Repeats(std::string token, grpc::StatusCode code, std::string words)
      : service_(std::move(token), {code, std::move(words)}) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
  }
  Repeats(const Repeats&) = delete;
  Repeats& operator=(const Repeats&) = delete;
  ~Repeats() { server_->Shutdown(std::chrono::system_clock::now()); }

  [[nodiscard]] servers::Usage run() const {
    return servers::measure(
        {INTERLOCK_BIN, "--log-level", "debug", "--url",
         std::string("etcd://me:") + Repeated::kEncoded + "@127.0.0.1:" + std::to_string(port_),
         "run", "-w", "1s", "job", "--", "true"});
  }

 private:
  class Answer final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Answer(const grpc::Status& refusal) { Finish(refusal); }
    explicit Answer(const std::string& body) : slice_(body), bytes_(&slice_, 1) {
      StartWriteAndFinish(&bytes_, {}, grpc::Status::OK);
    }
    void OnDone() override { delete this; }  // as gRPC wants it

   private:
    grpc::Slice slice_;
    grpc::ByteBuffer bytes_;
  };
  class Service final : public grpc::CallbackGenericService {
   public:
    Service(std::string token, grpc::Status refusal)
        : token_(std::move(token)), refusal_(std::move(refusal)) {}
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
      if (token_.empty() || context->method() != "/etcdserverpb.Auth/Authenticate")
        return new Answer(refusal_);
      return new Answer("\x12" + std::string(1, static_cast<char>(token_.size())) + token_);
    }

   private:
    const std::string token_;
    const grpc::Status refusal_;
  };

  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(Password, IsNotShownIfAServerRepeatsIt) {
  for (const auto code : {grpc::StatusCode::UNAUTHENTICATED, grpc::StatusCode::INVALID_ARGUMENT,
                          grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::INTERNAL}) {
    Repeated::expect_hidden(Repeats("", code, Repeated::text()).run());
    Repeated::expect_hidden(Repeats("a.token", code, Repeated::text()).run());
  }
}

TEST(Token, IsNotShownIfAServerRepeatsIt) {
  const auto usage =
      Repeats("hush.token", grpc::StatusCode::PERMISSION_DENIED, "no hush.token, please").run();
  EXPECT_NE(usage.output.find("no ***, please"), std::string::npos) << usage.output;
}

// What goes into a header of HTTP may not have line breaks. Expected: an error, and no crash.
TEST(Token, ThatMakesNoSenseIsAnError) {
  for (const std::string token : {"two\r\nlines", "\x01", "\xc3\xbc"}) {
    const auto usage = Repeats(token, grpc::StatusCode::PERMISSION_DENIED, "no").run();
    EXPECT_EQ(usage.status, 69) << usage.output;
    EXPECT_NE(usage.output.find("token"), std::string::npos) << usage.output;
  }
}

TEST(ReadablePassword, IsWarnedOf) {
  for (const std::string there :
       {"etcd://me:pw@db.example", "etcd://me:pw@localhost,127.evil.example:1",
        "etcd://me:pw@[fe80::1]"}) {
    const auto warnings = stores::open(there)->traits().warnings;
    ASSERT_EQ(warnings.size(), 1U) << there;
    EXPECT_NE(warnings[0].find("etcds://"), std::string::npos) << warnings[0];
  }
  for (const std::string here : {"etcd://db.example", "etcd://me:pw@localhost,127.0.0.1:1,[::1]:2",
                                 "etcds://me:pw@db.example"})
    EXPECT_TRUE(stores::open(here)->traits().warnings.empty()) << here;
}

}  // namespace
}  // namespace interlock::etcd_tests
