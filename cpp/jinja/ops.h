// Python's operations on values. Each fails where Python would, with its own message; none throws.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime.h"

namespace zinc_rt::jinja {

enum class BinaryOp : std::uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

// text.cpp
Status append_str(Runtime& rt, MarkedText& out, const Value& value);   // str(value)
Status append_repr(Runtime& rt, MarkedText& out, const Value& value);  // repr(value)
Result<MarkedText> to_str(Runtime& rt, const Value& value);
Result<MarkedText> to_repr(Runtime& rt, const Value& value);
// Applies `map` to a whole text. Bytes that it maps one by one keep their marks. Otherwise, if any part of the text is
// marked, the whole result is.
MarkedText map_marked(MarkedView text, std::string (*map)(std::string_view));
// The same for a `map` of single characters: the marks stay exact.
MarkedText map_runs(MarkedView text, std::string (*map)(std::string_view));
std::string float_repr(double d);
std::string repr_of(std::string_view text);  // repr of a str
std::unexpected<Error> undefined_error(Runtime& rt, const Value& undefined);
std::unexpected<Error> beyond_ints(const Value& value);  // of an operation on an int that 64 bits do not hold

// compare.cpp
bool truthy(const Value& value);
Result<bool> equals(Runtime& rt, const Value& a, const Value& b);
Result<bool> compare(Runtime& rt, CompareOp op, const Value& a, const Value& b);
Result<bool> contains(Runtime& rt, const Value& container, const Value& item);
Result<std::uint64_t> hash_of(Runtime& rt, const Value& value);
// Stable; compares with < and fails as it does.
Status sort_by_keys(Runtime& rt, std::vector<Value>& keys, std::vector<Value>& items, bool reverse);

// dict.cpp
const Value* dict_get(const DictObject& dict, std::string_view key);  // null if absent
Result<const Value*> dict_find(Runtime& rt, const DictObject& dict, const Value& key);
Status dict_set(Runtime& rt, DictObject& dict, const Value& key, Value value);
Status dict_set(Runtime& rt, DictObject& dict, std::string_view key, Value value);
// The n-th named argument of a call.
Status dict_set_named(Runtime& rt, DictObject& dict, const Args& args, std::size_t n);
// dict(source): a mapping or an iterable of pairs, put into target.
Status dict_update(Runtime& rt, DictObject& target, const Value& source);

// access.cpp
Result<Value> get_attribute(Runtime& rt, const Value& object, const Value& name);  // object.name
// getattr(object, name) without a fall-back to items; missing if there is no such attribute.
Result<Value> own_attribute(Runtime& rt, const Value& object, std::string_view name);
Result<Value> get_item(Runtime& rt, const Value& object, const Value& key);  // object[key]
Result<Value> get_slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step);
Result<std::int64_t> length(Runtime& rt, const Value& value);
bool has_length(const Value& value);
bool is_iterable(const Value& value);
Result<std::vector<Value>> to_vector(Runtime& rt, const Value& iterable);
// Returns the items, which must be as many as the targets. Otherwise returns an error with both numbers.
Result<std::vector<Value>> unpack(Runtime& rt, const Value& iterable, std::size_t n);

// arithmetic.cpp
Result<Value> binary(Runtime& rt, BinaryOp op, const Value& a, const Value& b);
Result<Value> negate(Runtime& rt, const Value& value);
Result<Value> plus(Runtime& rt, const Value& value);
Result<Value> round_value(Runtime& rt, const Value& value, std::int64_t precision);
// int(value) and float(value) of a str; nullopt if it is not a number.
std::optional<double> parse_float(std::string_view text);
Result<std::optional<std::int64_t>> parse_int(std::string_view text, std::int64_t base);
Result<std::int64_t> float_to_int(double d);

// format.cpp
Result<Value> percent_format(Runtime& rt, const Value& format, const Value& arguments);  // format % arguments
Result<MarkedText> str_format(Runtime& rt, MarkedView format, const Args& arguments);    // format.format(...)

// methods_split.cpp
// The lines are views of `text`.
Result<std::vector<std::string_view>> split_lines(Runtime& rt, std::string_view text, bool keep_ends);
// Replaces at most `limit` occurrences; all if limit < 0.
Result<MarkedText> replace_text(Runtime& rt, MarkedView text, std::string_view old_text, MarkedView new_text,
                                std::int64_t limit);

// html.cpp
std::string escape_html(std::string_view text);
// markupsafe.escape: markup is returned as it is, anything else as escaped markup.
Result<Value> escape_value(Runtime& rt, const Value& value);

}  // namespace zinc_rt::jinja
