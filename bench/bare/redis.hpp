// A lock on Redis by hand: what any library is measured against.
#pragma once

#include <hiredis/hiredis.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

inline constexpr const char* kCompareAndDelete =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
inline constexpr const char* kToken = "0123456789abcdef0123456789abcdef";

/// One blocking connection, as most programs have it.
class BareRedis {
 public:
  explicit BareRedis(int port) : context_(redisConnect("127.0.0.1", port)) {
    const auto reply = call({"SCRIPT", "LOAD", kCompareAndDelete});
    sha_.assign(reply->str, reply->len);
  }

  struct Free {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
    void operator()(redisContext* context) const { redisFree(context); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  Reply call(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const auto& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    auto* reply = static_cast<redisReply*>(redisCommandArgv(
        context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()));
    if (reply == nullptr) throw std::runtime_error("hiredis: " + std::string(context_->errstr));
    return Reply(reply);
  }

  bool take(const std::string& key, const std::string& token, const std::string& ttl_ms) {
    return call({"SET", key, token, "NX", "PX", ttl_ms})->type == REDIS_REPLY_STATUS;
  }
  void give(const std::string& key, const std::string& token) {
    call({"EVALSHA", sha_, "1", key, token});
  }
  void cycle(const std::string& key) {
    take(key, kToken, "30000");
    give(key, kToken);
  }

 private:
  std::unique_ptr<redisContext, Free> context_;
  std::string sha_;
};

}  // namespace bench
