// How many messages are inside a message, known before it is parsed: each takes memory, and takes as little
// as two bytes on the way.
#pragma once

#include <cstddef>

namespace google::protobuf::io {
class ZeroCopyInputStream;
}

namespace interlock::etcd {

/// What is to be counted.
enum class Answered { txn, watch };

/// True if a message of this type has at most so many messages inside.
bool has_at_most(std::size_t elements, Answered type,
                 google::protobuf::io::ZeroCopyInputStream& bytes);

}  // namespace interlock::etcd
