#include "backends/redis/realm.hpp"

namespace interlock::redis {

std::string fresh_channel(const KeyNames& names) {
  return names.prefix() + "wake:" + Owner::random().to_string();
}

OneServer::OneServer(Loop& loop, const KeyNames& names, std::string where, const Endpoint& endpoint,
                     const Access& access, WakeSink wake, Server::Kind kind)
    : style_{.fence = names.fence(), .channel = fresh_channel(names)},
      server_(std::make_shared<Server>(loop, std::move(where), endpoint, access, style_.channel,
                                       std::move(wake), kind)) {}

void OneServer::run(std::uint16_t /*slot*/, const Script& script, const MakeWords& words, Call how,
                    Server::Then then) {
  server_->run(script, words(style_), how, std::move(then));
}

bool OneServer::listen(std::uint16_t /*slot*/, std::function<void(bool listening)> then) {
  return server_->listen(std::move(then));
}

void OneServer::all(Call /*how*/, std::function<void(Servers, std::optional<Error>)> then) {
  then({server_}, std::nullopt);
}

}  // namespace interlock::redis
