// Implements truth, equality, order, containment, hashes and sorting of values, as Python defines them.
#include <algorithm>
#include <cmath>

#include "jinja/loop.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

bool int_equals_float(std::int64_t i, double d) {
  return d >= -9223372036854775808.0 && d < 9223372036854775808.0 && std::trunc(d) == d &&
         static_cast<std::int64_t>(d) == i;
}

// Compares two ints of which at least one does not fit 64 bits. Returns -1, 0 or 1.
int order_wide(const Value& a, const Value& b) {
  const auto sign = [](const Value& value) { return value.as_real() < 0 ? -1 : 1; };
  if (!is_beyond_ints(a)) return -sign(b);
  if (!is_beyond_ints(b) || sign(a) != sign(b)) return sign(a);
  const auto &x = a.as<NumberObject>().text, &y = b.as<NumberObject>().text;
  const int order = x.size() != y.size() ? (x.size() < y.size() ? -1 : 1) : x.compare(y);
  return order == 0 ? 0 : (order < 0 ? -sign(a) : sign(a));
}

// Compares two numbers. Returns -1, 0 or 1, or 2 if they have no order (NaN). REQUIRES: both have passed through counted()
// (value.h), so that a kNumber among them is an int beyond 64 bits.
int order_numbers(const Value& a, const Value& b) {
  if ((is_beyond_ints(a) && !b.is(Kind::kFloat)) || (is_beyond_ints(b) && !a.is(Kind::kFloat))) return order_wide(a, b);
  if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int();
  double x = a.as_real();
  double y = b.as_real();
  if (std::isnan(x) || std::isnan(y)) return 2;
  if (x != y) return x < y ? -1 : 1;
  if (is_beyond_ints(a) || is_beyond_ints(b)) return 0;
  // The numbers are equal as doubles. An int above 2^53 may still differ from the double next to it.
  if (a.is(Kind::kFloat) == b.is(Kind::kFloat)) return 0;
  bool int_first = a.is_integral();
  std::int64_t i = int_first ? a.as_int() : b.as_int();
  double d = int_first ? y : x;
  if (d >= 9223372036854775808.0) return int_first ? -1 : 1;
  auto truncated = static_cast<std::int64_t>(d);
  int order = i < truncated ? -1 : i > truncated;
  return int_first ? order : -order;
}

bool holds(CompareOp op, int order) {
  switch (op) {
    case CompareOp::kLt: return order == -1;
    case CompareOp::kLe: return order == -1 || order == 0;
    case CompareOp::kGt: return order == 1;
    case CompareOp::kGe: return order == 1 || order == 0;
    default: return false;
  }
}

std::string_view symbol(CompareOp op) {
  switch (op) {
    case CompareOp::kLt: return "<";
    case CompareOp::kLe: return "<=";
    case CompareOp::kGt: return ">";
    case CompareOp::kGe: return ">=";
    default: return "==";
  }
}

bool is_ordering(CompareOp op) {
  return op == CompareOp::kLt || op == CompareOp::kLe || op == CompareOp::kGt || op == CompareOp::kGe;
}

Result<bool> sequences_equal(Runtime& rt, const SeqObject& a, const SeqObject& b) {
  if (a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    ZRT_TRY(bool same, equals(rt, a.items[i], b.items[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> dicts_equal(Runtime& rt, const DictObject& a, const DictObject& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    ZRT_TRY(const Value* other, dict_find(rt, b, key));
    if (other == nullptr) return false;
    ZRT_TRY(bool same, equals(rt, value, *other));
    if (!same) return false;
  }
  return true;
}

// Sorts the part [begin, end) of `order` stably by the keys. `scratch` has the same size as `order`.
Status merge_sort(Runtime& rt, const std::vector<Value>& keys, std::vector<std::uint32_t>& order,
                  std::vector<std::uint32_t>& scratch, std::size_t begin, std::size_t end) {
  if (end - begin < 2) return {};
  std::size_t middle = begin + (end - begin) / 2;
  ZRT_CHECK_OK(merge_sort(rt, keys, order, scratch, begin, middle));
  ZRT_CHECK_OK(merge_sort(rt, keys, order, scratch, middle, end));
  std::size_t a = begin;
  std::size_t b = middle;
  for (std::size_t out = begin; out < end; ++out) {
    bool take_second = a == middle;
    if (!take_second && b < end) {
      ZRT_TRY(take_second, compare(rt, CompareOp::kLt, keys[order[b]], keys[order[a]]));
    }
    scratch[out] = take_second ? order[b++] : order[a++];
  }
  std::copy(scratch.begin() + static_cast<std::ptrdiff_t>(begin), scratch.begin() + static_cast<std::ptrdiff_t>(end),
            order.begin() + static_cast<std::ptrdiff_t>(begin));
  return {};
}

}  // namespace

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kNone:
    case Kind::kUndefined: return false;
    case Kind::kBool:
    case Kind::kInt: return value.as_int() != 0;
    case Kind::kFloat:
    case Kind::kNumber: return value.as_real() != 0;
    case Kind::kStr: return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple: return !value.as<SeqObject>().items.empty();
    case Kind::kDict: return !value.as<DictObject>().items.empty();
    case Kind::kDictView: return truthy(value.as<DictViewObject>().dict);
    case Kind::kRange: return value.as<RangeObject>().size() > 0;
    default: return true;
  }
}

Result<bool> equals(Runtime& rt, const Value& a, const Value& b) {
  if (rt.over()) return rt.limit_error();
  if (a.is(Kind::kNumber) || b.is(Kind::kNumber))
    return a.is_number() && b.is_number() && order_numbers(counted(a), counted(b)) == 0;
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
    if (a.is(Kind::kFloat) && b.is(Kind::kFloat)) return a.as_real() == b.as_real();
    return a.is_integral() ? int_equals_float(a.as_int(), b.as_real()) : int_equals_float(b.as_int(), a.as_real());
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kNone:
    case Kind::kUndefined: return true;
    case Kind::kBuiltin: return a.as_builtin() == b.as_builtin();
    case Kind::kStr: {
      const std::string& x = a.text();
      const std::string& y = b.text();
      if (x.size() != y.size()) return false;
      if (rt.over(x.size() / kBytesPerStep)) return rt.limit_error();
      return x == y;
    }
    default: break;
  }
  if (a.object() == b.object()) return true;
  Runtime::Level level(rt);
  if (rt.too_deep()) return rt.depth_error();
  switch (a.kind()) {
    case Kind::kList:
    case Kind::kTuple: return sequences_equal(rt, a.as<SeqObject>(), b.as<SeqObject>());
    case Kind::kDict: return dicts_equal(rt, a.as<DictObject>(), b.as<DictObject>());
    case Kind::kRange: {
      const auto& x = a.as<RangeObject>();
      const auto& y = b.as<RangeObject>();
      std::int64_t n = x.size();
      return n == y.size() && (n == 0 || (x.start == y.start && (n == 1 || x.step == y.step)));
    }
    default: return false;
  }
}

Result<bool> compare(Runtime& rt, CompareOp op, const Value& a, const Value& b) {
  if (op == CompareOp::kIn) return contains(rt, b, a);
  if (op == CompareOp::kNotIn) {
    ZRT_TRY(bool inside, contains(rt, b, a));
    return !inside;
  }
  if (!is_ordering(op)) {
    ZRT_TRY(bool same, equals(rt, a, b));
    return same == (op == CompareOp::kEq);
  }
  if (rt.over()) return rt.limit_error();
  if (a.is_undefined()) return undefined_error(rt, a);
  if (b.is_undefined()) return undefined_error(rt, b);
  if (a.is_number() && b.is_number()) return holds(op, order_numbers(counted(a), counted(b)));
  if (a.is_str() && b.is_str()) {
    // UTF-8 texts have the same order by bytes as by code points.
    if (rt.over(std::min(a.text().size(), b.text().size()) / kBytesPerStep)) return rt.limit_error();
    int order = a.text().compare(b.text());
    return holds(op, order < 0 ? -1 : order > 0);
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    Runtime::Level level(rt);
    if (rt.too_deep()) return rt.depth_error();
    const auto& x = a.as<SeqObject>().items;
    const auto& y = b.as<SeqObject>().items;
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      ZRT_TRY(bool same, equals(rt, x[i], y[i]));
      if (!same) return compare(rt, op, x[i], y[i]);
    }
    return holds(op, x.size() < y.size() ? -1 : x.size() > y.size());
  }
  return raise("'{}' not supported between instances of '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

Result<bool> contains(Runtime& rt, const Value& container, const Value& item) {
  if (rt.over()) return rt.limit_error();
  switch (container.kind()) {
    case Kind::kStr:
      if (!item.is_str()) return raise("'in <string>' requires string as left operand, not {}", type_name(item));
      if (rt.over((container.text().size() + item.text().size()) / kBytesPerStep)) return rt.limit_error();
      return find_text(container.text(), item.text()) != std::string::npos;
    case Kind::kDict: {
      ZRT_TRY(const Value* found, dict_find(rt, container.as<DictObject>(), item));
      return found != nullptr;
    }
    case Kind::kDictView:
      if (container.as<DictViewObject>().view == ViewKind::kKeys) {
        return contains(rt, container.as<DictViewObject>().dict, item);
      }
      break;
    default: break;
  }
  if (!is_iterable(container)) return raise("argument of type '{}' is not iterable", type_name(container));
  Cursor cursor(container);
  Value candidate;
  for (;;) {
    ZRT_TRY(bool more, cursor.next(rt, candidate));
    if (!more) return false;
    ZRT_TRY(bool same, equals(rt, candidate, item));
    if (same) return true;
  }
}

Result<std::uint64_t> hash_of(Runtime& rt, const Value& given) {
  const Value value = counted(given);
  switch (value.kind()) {
    // an int beyond 64 bits hashes like the float of the same value, because the int and a float may be equal
    case Kind::kNumber: return std::hash<double>()(value.as_real());
    case Kind::kStr:
      if (rt.over(value.text().size() / kBytesPerStep)) return rt.limit_error();
      return std::hash<std::string_view>()(value.text());
    case Kind::kBool:
    case Kind::kInt: return std::hash<std::int64_t>()(value.as_int()) * 0x9e3779b97f4a7c15ull;
    case Kind::kFloat: {
      double d = value.as_real();
      if (d >= -9223372036854775808.0 && d < 9223372036854775808.0 && std::trunc(d) == d) {
        return std::hash<std::int64_t>()(static_cast<std::int64_t>(d)) * 0x9e3779b97f4a7c15ull;
      }
      return std::hash<double>()(d);
    }
    case Kind::kTuple: {
      Runtime::Level level(rt);
      if (rt.too_deep()) return rt.depth_error();
      std::uint64_t hash = 0x345678;
      for (const Value& item : value.as<SeqObject>().items) {
        if (rt.over()) return rt.limit_error();
        ZRT_TRY(std::uint64_t part, hash_of(rt, item));
        hash = (hash ^ part) * 0x100000001b3ull;
      }
      return hash;
    }
    case Kind::kNone:
    case Kind::kUndefined: return 0x51ed27;
    case Kind::kRange: return 0x77a5;
    case Kind::kList:
    case Kind::kDict:
    case Kind::kDictView: return raise("unhashable type: '{}'", type_name(value));
    case Kind::kBuiltin: return std::hash<const void*>()(value.as_builtin());
    case Kind::kMissing: return 0;
    default: return std::hash<const void*>()(value.object());
  }
}

Status sort_by_keys(Runtime& rt, std::vector<Value>& keys, std::vector<Value>& items, bool reverse) {
  // Python's reverse sort keeps the order of equal items. To get the same result, the items are reversed, sorted, and
  // reversed again.
  auto flip = [&] {
    if (!reverse) return;
    std::reverse(items.begin(), items.end());
    std::reverse(keys.begin(), keys.end());
  };
  flip();
  std::vector<std::uint32_t> order(items.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::vector<std::uint32_t> scratch(order.size());
  ZRT_CHECK_OK(merge_sort(rt, keys, order, scratch, 0, order.size()));
  std::vector<Value> sorted_items(items.size());
  std::vector<Value> sorted_keys(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted_items[i] = std::move(items[order[i]]);
    sorted_keys[i] = std::move(keys[order[i]]);
  }
  items = std::move(sorted_items);
  keys = std::move(sorted_keys);
  flip();
  return {};
}

}  // namespace zinc_rt::jinja
