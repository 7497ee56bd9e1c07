// A shard as JSON: read by a library, record by record, and believed only if all of it makes sense.
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "backends/file/shard.hpp"
#include "core/format.hpp"
#include "core/text.hpp"

namespace interlock::file {

namespace {

constexpr std::uint64_t kLargestFence = std::uint64_t{1} << 53U;
constexpr std::size_t kLongestLine = 65536;
constexpr std::string_view kBlanks = " \t\r\n";
constexpr Duration kLongestTtl = std::chrono::hours(24 * 367);

[[noreturn]] void corrupt(const std::string& why) { throw Error(Errc::corrupt, why); }

/// The values of one object. Kept and filled again for each record.
class Fields {
 public:
  void clear() {
    for (auto& value : values_) value.kind = Kind::none;
    present_ = nullptr;
  }

  /// The next value is this one's. Keys that are not known are read over.
  void key(std::string_view name) {
    const auto at = std::find(kNames.begin(), kNames.end(), name);
    present_ =
        at == kNames.end() ? nullptr : &values_[static_cast<std::size_t>(at - kNames.begin())];
    if (present_ != nullptr && present_->kind != Kind::none) {
      corrupt("'" + std::string(name) + "' is there twice");
    }
  }
  void put(std::string& text) {
    if (present_ == nullptr) return;
    present_->kind = Kind::text;
    present_->text.swap(text);
  }
  void put(std::uint64_t number) {
    if (present_ == nullptr) return;
    present_->kind = Kind::number;
    present_->number = number;
  }
  void put(std::int64_t number) {
    if (present_ == nullptr) return;
    present_->kind = Kind::negative;
    present_->number = static_cast<std::uint64_t>(number);
  }
  void put(bool flag) {
    if (present_ == nullptr) return;
    present_->kind = Kind::flag;
    present_->number = flag ? 1 : 0;
  }
  void put_other() {
    if (present_ != nullptr) present_->kind = Kind::other;
  }

  [[nodiscard]] const std::string& text(std::string_view name) const {
    const Value& value = find(name);
    if (value.kind != Kind::text) corrupt(quoted(name) + " is missing or not a text");
    return value.text;
  }
  [[nodiscard]] std::string text_or_empty(std::string_view name) const {
    return find(name).kind == Kind::none ? std::string() : text(name);
  }
  [[nodiscard]] bool flag(std::string_view name) const {
    const Value& value = find(name);
    if (value.kind == Kind::none) return false;
    if (value.kind != Kind::flag) corrupt(quoted(name) + " is not true or false");
    return value.number != 0;
  }
  template <class Integer>
  [[nodiscard]] Integer number(std::string_view name, Integer least, Integer most) const {
    const Value& value = find(name);
    const bool negative = value.kind == Kind::negative;
    const auto below = static_cast<std::int64_t>(value.number);
    const bool sensible =
        negative ? std::cmp_greater_equal(below, least) && std::cmp_less_equal(below, most)
                 : value.kind == Kind::number && std::cmp_greater_equal(value.number, least) &&
                       std::cmp_less_equal(value.number, most);
    if (!sensible) corrupt(quoted(name) + " is missing or not a sensible number");
    return static_cast<Integer>(value.number);
  }
  template <class Integer>
  [[nodiscard]] Integer number_or_zero(std::string_view name, Integer least, Integer most) const {
    return find(name).kind == Kind::none ? 0 : number<Integer>(name, least, most);
  }

 private:
  enum class Kind : std::uint8_t { none, text, number, negative, flag, other };
  struct Value {
    Kind kind = Kind::none;
    std::uint64_t number = 0;
    std::string text;
  };
  // In the order in which they are written, most of all.
  static constexpr std::array<std::string_view, 23> kNames{
      "res",   "owner", "mode",     "since",     "exp",    "fence", "pid",     "born",
      "realm", "home",  "who",      "host",      "ticket", "slots", "cap",     "prio",
      "anc",   "first", "identity", "interlock", "boot",   "actor", "owner_id"};

  [[nodiscard]] const Value& find(std::string_view name) const {
    return values_[static_cast<std::size_t>(std::find(kNames.begin(), kNames.end(), name) -
                                            kNames.begin())];
  }
  static std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

  std::array<Value, kNames.size()> values_;
  Value* present_ = nullptr;
};

Mode mode_of(const std::string& name) {
  for (const auto mode : {Mode::exclusive, Mode::shared, Mode::slots}) {
    if (name == to_string(mode)) return mode;
  }
  corrupt("there is no mode '" + printable(name, 32) + "'");
}

std::uint64_t hexadecimal(const std::string& digits) {
  std::uint64_t value = 0;
  const auto* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value, 16);
  if (error != std::errc{} || end != last) corrupt("'home' is not a hexadecimal number");
  return value;
}

Record record_of(const Fields& fields, TimePoint now) {
  constexpr auto any = std::numeric_limits<std::uint64_t>::max();
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  using Signed = std::numeric_limits<std::int32_t>;
  Record record;
  const auto owner = Owner::parse(fields.text("owner"));
  if (!owner || owner->empty()) corrupt("'owner' is not 32 hexadecimal digits");
  record.owner = *owner;
  record.mode = mode_of(fields.text("mode"));
  if (record.mode == Mode::slots) {
    record.capacity = fields.number<std::uint32_t>("cap", 1, most);
    record.slots = fields.number<std::uint32_t>("slots", 1, record.capacity);
  }
  record.ancestor = fields.flag("anc");
  record.priority = fields.number_or_zero<std::int32_t>("prio", Signed::min(), Signed::max());
  const auto latest = (now + kLongestTtl).time_since_epoch().count();
  record.since = TimePoint(Duration(fields.number<std::int64_t>("since", 0, latest)));
  record.expires = TimePoint(Duration(fields.number<std::int64_t>("exp", 0, latest)));
  record.origin.born = fields.number_or_zero<std::uint64_t>("born", 0, any);
  record.origin.realm = fields.number_or_zero<std::uint64_t>("realm", 0, any);
  record.origin.home = hexadecimal(fields.text("home"));
  record.who =
      std::make_shared<const Who>(Who{.label = fields.text("who"),
                                      .identity = fields.text_or_empty("identity"),
                                      .host = fields.text_or_empty("host"),
                                      .pid = fields.number<std::int64_t>("pid", 0, Signed::max()),
                                      .actor = fields.text_or_empty("actor"),
                                      .owner_id = fields.text_or_empty("owner_id")});
  return record;
}

/// Takes the library's events: the header's fields first, then the two lists of records.
class Reader {
 public:
  Reader(ShardId id, const ReadContext& context, LockTable& table)
      : id_(id), context_(context), table_(table) {}

  [[nodiscard]] ShardState state() const {
    if (!has_records_ || !has_queue_) corrupt("'records' or 'queue' is missing");
    return state_;
  }

  // What the library calls.
  bool start_object(std::size_t /*unknown*/) {
    if (place_ != Place::outside && place_ != Place::list) corrupt("there is an object too many");
    place_ = place_ == Place::outside ? Place::header : Place::record;
    fields_.clear();
    return true;
  }
  bool end_object() {
    if (place_ == Place::record) take_record();
    place_ = place_ == Place::record ? Place::list : Place::outside;
    return true;
  }
  bool start_array(std::size_t /*unknown*/) {
    bool& has = name_ == "records" ? has_records_ : has_queue_;
    if (place_ != Place::header || (name_ != "records" && name_ != "queue") || has) {
      corrupt("there is a list too many");
    }
    if (!has_records_ && !has_queue_) take_header();
    has = true;
    in_queue_ = name_ == "queue";
    seen_.clear();
    place_ = Place::list;
    return true;
  }
  bool end_array() {
    place_ = Place::header;
    return true;
  }
  bool key(std::string& name) {
    if (place_ == Place::header) name_ = name;
    fields_.key(name);
    return true;
  }
  bool null() {
    return value([&] { fields_.put_other(); });
  }
  bool boolean(bool flag) {
    return value([&] { fields_.put(flag); });
  }
  bool number_integer(std::int64_t number) {
    return value([&] { fields_.put(number); });
  }
  bool number_unsigned(std::uint64_t number) {
    return value([&] { fields_.put(number); });
  }
  bool number_float(double, const std::string&) {
    return value([&] { fields_.put_other(); });
  }
  bool string(std::string& text) {
    return value([&] { fields_.put(text); });
  }
  template <class Binary>
  bool binary(Binary&) {
    return false;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) {
    return false;
  }

 private:
  enum class Place : std::uint8_t { outside, header, list, record };

  template <class Put>
  bool value(Put put) {
    if (place_ != Place::header && place_ != Place::record) corrupt("it has another structure");
    put();
    return true;
  }

  void take_header() {
    const auto format = fields_.number<std::uint64_t>("interlock", 0, ~std::uint64_t{0});
    if (format != kFormat) throw Error(Errc::refused, core::other_format(format, kFormat));
    state_.fence = fields_.number<std::uint64_t>("fence", 0, kLargestFence);
    state_.ticket = fields_.number<std::uint64_t>("ticket", 0, kLargestFence);
    void_ = fields_.text("boot") != context_.boot;
  }

  void take_record() {
    if (++records_ > kMostRecords)
      corrupt("it has more than " + std::to_string(kMostRecords) + " records");
    if (void_) return;
    const auto& resource = fields_.text("res");
    if (resource.empty() || shard_of(resource) != id_) {
      corrupt("the resource '" + printable(resource, 64) + "' does not belong here");
    }
    auto record = record_of(fields_, context_.now);
    if (!seen_.emplace(record.owner, resource).second) {
      corrupt("one owner is recorded twice for '" + printable(resource, 64) + "'");
    }
    if (in_queue_) {
      const Ticket ticket{.stronger = fields_.flag("first"),
                          .priority = record.priority,
                          .number = fields_.number<std::uint64_t>("ticket", 1, state_.ticket)};
      if (!places_.emplace(ticket, resource).second) corrupt("two have the same ticket");
      if (context_.skip && context_.skip(record)) return;
      table_.restore_waiter(resource, ticket, std::move(record));
    } else {
      record.fence = fields_.number<std::uint64_t>("fence", 0, state_.fence);
      if (context_.skip && context_.skip(record)) return;
      table_.restore_holder(resource, std::move(record));
    }
  }

  ShardId id_;
  const ReadContext& context_;
  LockTable& table_;
  ShardState state_;
  Place place_ = Place::outside;
  Fields fields_;
  std::string name_;
  bool has_records_ = false;
  bool has_queue_ = false;
  bool in_queue_ = false;
  bool void_ = false;
  std::size_t records_ = 0;
  std::set<std::pair<Owner, std::string>> seen_;
  std::set<std::pair<Ticket, std::string>> places_;
};

// Each record has a line of its own, and no line begins with a blank. The library keeps a text, and all blanks between
// two of them, several times while it reads.
void check_lines(std::string_view content) {
  while (!content.empty()) {
    const auto length = std::min(content.find('\n'), content.size());
    if (length > kLongestLine) corrupt("a line has more than 64 KiB");
    if (kBlanks.find(content.front()) != kBlanks.npos)
      corrupt("a line is empty, or begins with a blank");
    content.remove_prefix(std::min(length + 1, content.size()));
  }
}

}  // namespace

ShardState read_shard(std::string_view content, ShardId id, const ReadContext& context,
                      LockTable& table) {
  if (content.empty()) return {};
  check_lines(content);
  Reader reader(id, context, table);
  if (!nlohmann::json::sax_parse(content, &reader)) corrupt("it is not JSON");
  return reader.state();
}

}  // namespace interlock::file
