#include "backends/etcd/elements.hpp"

#include <etcd.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace interlock::etcd {

namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

enum class Type { leaf, txn, op, list };

// What has messages inside that count. (All others are counted as one.)
Type type_of(Type message, int field) {
  if (message == Type::txn && field == wire::TxnResponse::kResponsesFieldNumber) return Type::op;
  if (message == Type::op && field == wire::ResponseOp::kResponseTxnFieldNumber) return Type::txn;
  if (message == Type::op && field == wire::ResponseOp::kResponseRangeFieldNumber)
    return Type::list;
  return Type::leaf;
}

// False if there are too many. What is malformed is for the parser to find.
bool count(Type message, CodedInputStream& in, std::size_t& left) {
  while (const auto tag = in.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) return true;
      continue;
    }
    if (left-- == 0) return false;
    std::uint32_t size = 0;
    if (!in.ReadVarint32(&size)) return true;
    const auto type = type_of(message, WireFormatLite::GetTagFieldNumber(tag));
    if (type == Type::leaf) {
      if (!in.Skip(static_cast<int>(size))) return true;
      continue;
    }
    const auto [limit, depth] = in.IncrementRecursionDepthAndPushLimit(static_cast<int>(size));
    if (depth < 0) return false;
    if (!count(type, in, left)) return false;
    if (!in.DecrementRecursionDepthAndPopLimit(limit)) return true;
  }
  return true;
}

}  // namespace

bool has_at_most(std::size_t elements, Answered type,
                 google::protobuf::io::ZeroCopyInputStream& bytes) {
  CodedInputStream in(&bytes);
  return count(type == Answered::txn ? Type::txn : Type::list, in, elements);
}

}  // namespace interlock::etcd
