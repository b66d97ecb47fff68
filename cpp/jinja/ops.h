// Declares Python's operations on values. Each fails where Python would, with Python's message, and none throws. The
// comments name the file that implements a group.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime.h"

namespace zinc_rt::jinja {

enum class BinaryOp : std::uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

// The following functions convert values to text. They are defined in text.cpp.
Status append_str(Runtime& rt, MarkedText& out, const Value& value);   // appends str(value)
Status append_repr(Runtime& rt, MarkedText& out, const Value& value);  // appends repr(value)
Result<MarkedText> to_str(Runtime& rt, const Value& value);
Result<MarkedText> to_repr(Runtime& rt, const Value& value);
// Applies `map` to a whole text, for a map that may change the number of bytes of a character. If no character changes
// its size, each byte keeps its mark. Otherwise, if any part of the text is marked, the whole result is marked.
MarkedText map_marked(MarkedView text, std::string (*map)(std::string_view));
// Applies `map` to a text of which some bytes are marked (base/marked_text.h). REQUIRES: `map` converts each character
// independently of its neighbours. So `map` is applied to each marked or unmarked part separately. A character of the
// result is marked exactly if the character that it comes from is marked.
MarkedText map_runs(MarkedView text, std::string (*map)(std::string_view));
std::string float_repr(double d);
std::string repr_of(std::string_view text);  // returns the repr of a str
std::unexpected<Error> undefined_error(Runtime& rt, const Value& undefined);
// Returns the error of an operation on an int that does not fit 64 bits.
std::unexpected<Error> beyond_ints(const Value& value);

// The following functions compare, hash and sort values. They are defined in compare.cpp.
bool truthy(const Value& value);
Result<bool> equals(Runtime& rt, const Value& a, const Value& b);
Result<bool> compare(Runtime& rt, CompareOp op, const Value& a, const Value& b);
Result<bool> contains(Runtime& rt, const Value& container, const Value& item);
Result<std::uint64_t> hash_of(Runtime& rt, const Value& value);
// Sorts keys, and items in the same order. The sort is stable. It compares with < and fails as < does.
Status sort_by_keys(Runtime& rt, std::vector<Value>& keys, std::vector<Value>& items, bool reverse);

// The following functions read and change dicts. They are defined in dict.cpp.
const Value* dict_get(const DictObject& dict, std::string_view key);  // returns null if the key is absent
Result<const Value*> dict_find(Runtime& rt, const DictObject& dict, const Value& key);
Status dict_set(Runtime& rt, DictObject& dict, const Value& key, Value value);
Status dict_set(Runtime& rt, DictObject& dict, std::string_view key, Value value);
// Adds the n-th named argument of a call.
Status dict_set_named(Runtime& rt, DictObject& dict, const Args& args, std::size_t n);
// Adds what Python's dict(source) contains to `target`. `source` is a mapping or an iterable of pairs.
Status dict_update(Runtime& rt, DictObject& target, const Value& source);

// The following functions read parts of values. They are defined in access.cpp.
Result<Value> get_attribute(Runtime& rt, const Value& object, const Value& name);  // returns object.name
// Returns getattr(object, name) and does not look at the object's items. Returns missing if the object has no such
// attribute.
Result<Value> own_attribute(Runtime& rt, const Value& object, std::string_view name);
Result<Value> get_item(Runtime& rt, const Value& object, const Value& key);  // returns object[key]
Result<Value> get_slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step);
Result<std::int64_t> length(Runtime& rt, const Value& value);
bool has_length(const Value& value);
bool is_iterable(const Value& value);
Result<std::vector<Value>> to_vector(Runtime& rt, const Value& iterable);
// Returns the items of an iterable for an assignment to n targets. If the number of items is not n, returns an error
// with both numbers.
Result<std::vector<Value>> unpack(Runtime& rt, const Value& iterable, std::size_t n);

// The following functions do arithmetic. They are defined in arithmetic.cpp.
Result<Value> binary(Runtime& rt, BinaryOp op, const Value& a, const Value& b);
Result<Value> negate(Runtime& rt, const Value& value);
Result<Value> plus(Runtime& rt, const Value& value);
Result<Value> round_value(Runtime& rt, const Value& value, std::int64_t precision);
// Return float(text) or int(text, base). Return nullopt if the text is not a number.
std::optional<double> parse_float(std::string_view text);
Result<std::optional<std::int64_t>> parse_int(std::string_view text, std::int64_t base);
Result<std::int64_t> float_to_int(double d);

// The following functions format texts by patterns. They are defined in format.cpp.
Result<Value> percent_format(Runtime& rt, const Value& format, const Value& arguments);  // returns format % arguments
Result<MarkedText> str_format(Runtime& rt, MarkedView format, const Args& arguments);    // returns format.format(...)

// methods_split.cpp implements these two functions. split_lines() returns the lines as views of `text`.
Result<std::vector<std::string_view>> split_lines(Runtime& rt, std::string_view text, bool keep_ends);
// Replaces the first `limit` occurrences of old_text, or all if limit is negative.
Result<MarkedText> replace_text(Runtime& rt, MarkedView text, std::string_view old_text, MarkedView new_text,
                                std::int64_t limit);

// html.cpp implements these functions. escape_html() returns the text with HTML entities for &, <, >, " and '.
std::string escape_html(std::string_view text);
// Returns what markupsafe.escape returns: markup unchanged, any other value as escaped markup.
Result<Value> escape_value(Runtime& rt, const Value& value);

}  // namespace zinc_rt::jinja
