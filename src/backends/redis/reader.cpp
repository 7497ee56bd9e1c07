#include "backends/redis/reader.hpp"

#include <new>
#include <string>

namespace interlock::redis {

// hiredis allocates room for all elements as soon as an array is announced.
template <class Count>
void* Reader::create_array(const redisReadTask* task, Count count) {
  auto& self = *static_cast<Reader*>(task->privdata);
  self.elements_ += static_cast<std::size_t>(count);
  return self.elements_ > kMostElements ? nullptr : self.defaults_.createArray(task, count);
}

Reader::Reader()
    : reader_(redisReaderCreate()),
      defaults_(reader_ ? *reader_->fn : throw std::bad_alloc()),
      functions_(defaults_) {
  functions_.createArray = create_array;
  reader_->fn = &functions_;
  reader_->privdata = this;
}

void Reader::feed(std::string_view bytes) {
  bytes_ += bytes.size();
  // An error shows in `next`.
  (void)redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
}

std::optional<Response> Reader::next() {
  void* reply = nullptr;
  const bool good = redisReaderGetReply(reader_.get(), &reply) == REDIS_OK;
  if (elements_ > kMostElements)
    throw Error(Errc::unreachable, "the server's reply has more than " +
                                       std::to_string(kMostElements) +
                                       " elements; is this a Redis server?");
  if (!good) throw Error(Errc::unreachable, "the server speaks no Redis protocol");
  if (reply == nullptr && bytes_ <= kMostBytes) return std::nullopt;
  if (reply == nullptr)
    throw Error(Errc::unreachable, "the server's reply is longer than " +
                                       std::to_string(kMostBytes >> 20U) +
                                       " MiB; is this a Redis server?");
  elements_ = 0;
  bytes_ = reader_->len - reader_->pos;
  return Response(static_cast<redisReply*>(reply));
}

}  // namespace interlock::redis
