// Implements how templates read parts of values: attributes, items, slices, lengths, and iteration over whole values.
#include <algorithm>
#include <cstdlib>

#include "jinja/call.h"
#include "jinja/loop.h"
#include "jinja/methods.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

// Returns an attribute that is not a method. Returns missing if the object has no such attribute.
Result<Value> data_attribute(Runtime& rt, const Value& object, std::string_view name) {
  switch (object.kind()) {
    case Kind::kLoop: return loop_attribute(rt, object, name);
    case Kind::kNamespace: {
      const Value* found = dict_get(object.as<NamespaceObject>().attributes.as<DictObject>(), name);
      return found != nullptr ? *found : Value();
    }
    case Kind::kMacro: return macro_attribute(rt, object, name);
    case Kind::kCycler: {
      const auto& cycler = object.as<CyclerObject>();
      if (name == "current") return cycler.items[cycler.position];
      if (name == "items") return rt.tuple(cycler.items);
      if (name == "pos") return Value::integer(static_cast<std::int64_t>(cycler.position));
      return Value();
    }
    case Kind::kJoiner: {
      const auto& joiner = object.as<JoinerObject>();
      if (name == "sep") return joiner.separator;
      if (name == "used") return Value::boolean(joiner.used);
      return Value();
    }
    case Kind::kTuple: {
      const auto& tuple = object.as<SeqObject>();
      if (tuple.is_group && name == "grouper") return tuple.items[0];
      if (tuple.is_group && name == "list") return tuple.items[1];
      return Value();
    }
    case Kind::kRange: {
      const auto& range = object.as<RangeObject>();
      if (name == "start") return Value::integer(range.start);
      if (name == "stop") return Value::integer(range.stop);
      if (name == "step") return Value::integer(range.step);
      return Value();
    }
    case Kind::kBool:
    case Kind::kInt:
      if (name == "real" || name == "numerator") return Value::integer(object.as_int());
      if (name == "imag") return Value::integer(0);
      if (name == "denominator") return Value::integer(1);
      return Value();
    case Kind::kFloat:
      if (name == "real") return object;
      if (name == "imag") return Value::real(0);
      return Value();
    default: return Value();
  }
}

Value unsafe(Runtime& rt, const Value& object, std::string_view name) {
  return rt.undefined(
      fmt::format("access to attribute {} of {} object is unsafe.", repr_of(name), repr_of(type_name(object))));
}

Result<Value> item_at(Runtime& rt, const Value& object, std::int64_t index) {
  ZRT_TRY(std::int64_t size, length(rt, object));
  if (index < 0) index += size;
  if (index < 0 || index >= size) return Value();
  switch (object.kind()) {
    case Kind::kRange: {
      const auto& range = object.as<RangeObject>();
      return Value::integer(range.start + index * range.step);
    }
    case Kind::kStr: {
      const auto& str = object.as<StrObject>();
      if (!is_ascii(str) && rt.over(str.text.size() / 64)) return rt.limit_error();
      std::size_t at = char_offset(str.text, static_cast<std::size_t>(index), is_ascii(str));
      return rt.part(object, std::string_view(str.text).substr(at, char_at(str.text, at).size), str.markup);
    }
    default: return object.as<SeqObject>().items[static_cast<std::size_t>(index)];
  }
}

// Returns object[key] without trying attributes, as Python does. Returns missing if the key does not exist or has the
// wrong type.
Result<Value> own_item(Runtime& rt, const Value& object, const Value& key) {
  if (object.is(Kind::kDict)) {
    if (key.is(Kind::kList) || key.is(Kind::kDict)) return Value();
    ZRT_TRY(const Value* found, dict_find(rt, object.as<DictObject>(), key));
    return found != nullptr ? *found : Value();
  }
  bool indexed = object.is_str() || object.is_sequence() || object.is(Kind::kRange);
  if (indexed && key.is_integral()) return item_at(rt, object, key.as_int());
  return Value();
}

struct SliceBounds {
  std::int64_t start, stop, step, count;
};

Result<std::optional<std::int64_t>> slice_index(const Value& value) {
  if (value.is_missing() || value.is_none()) return std::optional<std::int64_t>();
  if (value.is_integral()) return std::optional(value.as_int());
  return raise("slice indices must be integers or None or have an __index__ method");
}

Result<SliceBounds> slice_bounds(std::int64_t size, const Value& start, const Value& stop, const Value& step) {
  ZRT_TRY(auto first, slice_index(start));
  ZRT_TRY(auto last, slice_index(stop));
  ZRT_TRY(auto stride, slice_index(step));
  // A step larger than this limit selects the same items, so it is clamped. The clamp shows only if a slice of a range
  // is printed, because only a range prints its step. With clamped steps the products with indices cannot overflow.
  std::int64_t limit = std::max<std::int64_t>(size + 1, 1 << 20);
  std::int64_t s = std::clamp<std::int64_t>(stride.value_or(1), -limit, limit);
  if (s == 0) return raise("slice step cannot be zero");
  auto clip = [&](std::optional<std::int64_t> index, std::int64_t otherwise) {
    if (!index) return otherwise;
    std::int64_t i = *index < 0 ? *index + size : *index;
    return s > 0 ? std::clamp<std::int64_t>(i, 0, size) : std::clamp<std::int64_t>(i, -1, size - 1);
  };
  std::int64_t from = clip(first, s > 0 ? 0 : size - 1);
  std::int64_t to = clip(last, s > 0 ? size : -1);
  std::int64_t count = s > 0 ? (from < to ? (to - from - 1) / s + 1 : 0) : (from > to ? (from - to - 1) / -s + 1 : 0);
  return SliceBounds{from, to, s, count};
}

Value slice_str(Runtime& rt, const Value& object, const SliceBounds& bounds) {
  const auto& str = object.as<StrObject>();
  bool ascii = is_ascii(str);
  if (bounds.count == 0) return rt.str("", str.markup);
  if (bounds.step == 1) {
    std::size_t from = char_offset(str.text, static_cast<std::size_t>(bounds.start), ascii);
    std::string_view rest = std::string_view(str.text).substr(from);
    return rt.part(object, rest.substr(0, char_offset(rest, static_cast<std::size_t>(bounds.count), ascii)),
                   str.markup);
  }
  std::vector<std::size_t> offsets;
  if (!ascii) {
    for (std::size_t pos = 0; pos < str.text.size(); pos += char_at(str.text, pos).size) offsets.push_back(pos);
  }
  MarkedText out;
  for (std::int64_t i = 0; i < bounds.count; ++i) {
    auto index = static_cast<std::size_t>(bounds.start + i * bounds.step);
    std::size_t at = ascii ? index : offsets[index];
    out += object.view().sub(at, char_at(str.text, at).size);
  }
  return rt.str(std::move(out), str.markup);
}

}  // namespace

Result<Value> own_attribute(Runtime& rt, const Value& object, std::string_view name) {
  ZRT_TRY(Value data, data_attribute(rt, object, name));
  if (!data.is_missing()) return data;
  bool forbidden = false;
  const Builtin* method = find_method(object, name, forbidden);
  if (forbidden) return unsafe(rt, object, name);
  if (method != nullptr) return rt.method(object, method);
  bool dunder = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
  if (dunder && !object.is(Kind::kNamespace)) return unsafe(rt, object, name);
  return Value();
}

Result<Value> get_attribute(Runtime& rt, const Value& object, const Value& name) {
  if (object.is_undefined()) return undefined_error(rt, object);
  const std::string& text = name.text();
  ZRT_TRY(Value own, own_attribute(rt, object, text));
  if (!own.is_missing()) return own;
  if (object.is(Kind::kDict)) {
    const Value* found = dict_get(object.as<DictObject>(), text);
    if (found != nullptr) return *found;
  }
  return rt.undefined_member(object, name);
}

Result<Value> get_item(Runtime& rt, const Value& object, const Value& key) {
  if (object.is_undefined()) return undefined_error(rt, object);
  ZRT_TRY(Value item, own_item(rt, object, key));
  if (!item.is_missing()) return item;
  if (key.is_str()) {
    ZRT_TRY(Value own, own_attribute(rt, object, key.text()));
    if (!own.is_missing()) return own;
  }
  return rt.undefined_member(object, key);
}

Result<Value> get_slice(Runtime& rt, const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) return undefined_error(rt, object);
  if (!object.is_str() && !object.is_sequence() && !object.is(Kind::kRange)) {
    if (object.is(Kind::kDict)) return raise("unhashable type: 'slice'");
    return raise("'{}' object is not subscriptable", type_name(object));
  }
  ZRT_TRY(std::int64_t size, length(rt, object));
  ZRT_TRY(SliceBounds bounds, slice_bounds(size, start, stop, step));
  if (object.is(Kind::kRange)) {
    const auto& range = object.as<RangeObject>();
    std::int64_t from = range.start + bounds.start * range.step;
    std::int64_t by = bounds.step * range.step;
    if (std::abs(by) > kMaxRangeBound) return raise("a range with step {} is not supported", by);
    return rt.range(from, range.start + bounds.stop * range.step, by);
  }
  if (object.is_str()) {
    if (rt.over(object.text().size() / 256)) return rt.limit_error();
    return slice_str(rt, object, bounds);
  }
  const auto& items = object.as<SeqObject>().items;
  if (rt.over(static_cast<std::uint64_t>(bounds.count) / 16)) return rt.limit_error();
  std::vector<Value> out;
  out.reserve(static_cast<std::size_t>(bounds.count));
  for (std::int64_t i = 0; i < bounds.count; ++i) {
    out.push_back(items[static_cast<std::size_t>(bounds.start + i * bounds.step)]);
  }
  return object.is(Kind::kList) ? rt.list(std::move(out)) : rt.tuple(std::move(out));
}

bool has_length(const Value& value) {
  switch (value.kind()) {
    case Kind::kStr:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kDictView:
    case Kind::kRange:
    case Kind::kUndefined:
    case Kind::kLoop: return true;
    default: return false;
  }
}

Result<std::int64_t> length(Runtime& rt, const Value& value) {
  switch (value.kind()) {
    case Kind::kStr:
      if (value.as<StrObject>().n_chars < 0 && rt.over(value.text().size() / 256)) return rt.limit_error();
      return n_chars(value.as<StrObject>());
    case Kind::kList:
    case Kind::kTuple: return static_cast<std::int64_t>(value.as<SeqObject>().items.size());
    case Kind::kDict: return static_cast<std::int64_t>(value.as<DictObject>().items.size());
    case Kind::kDictView: return length(rt, value.as<DictViewObject>().dict);
    case Kind::kRange: return value.as<RangeObject>().size();
    case Kind::kUndefined: return 0;
    case Kind::kLoop: return value.as<LoopObject>().total(rt);
    default: return raise("object of type '{}' has no len()", type_name(value));
  }
}

bool is_iterable(const Value& value) {
  return (has_length(value) && !value.is(Kind::kLoop)) || value.is(Kind::kIterator);
}

Result<std::vector<Value>> to_vector(Runtime& rt, const Value& iterable) {
  if (iterable.is_sequence()) {
    const auto& items = iterable.as<SeqObject>().items;
    if (rt.over(items.size() / 16)) return rt.limit_error();
    return items;
  }
  std::vector<Value> out;
  Cursor cursor(iterable);
  Value item;
  for (;;) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) return out;
    out.push_back(std::move(item));
    if (out.size() % 4096 == 0) ZRT_CHECK_OK(rt.reserve(sizeof(Value), out.size()));
  }
}

Result<std::vector<Value>> unpack(Runtime& rt, const Value& iterable, std::size_t n) {
  if (!is_iterable(iterable)) return raise("cannot unpack non-iterable {} object", type_name(iterable));
  std::vector<Value> out;
  Cursor cursor(iterable);
  Value item;
  for (;;) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) break;
    if (out.size() == n) return raise("too many values to unpack (expected {})", n);
    out.push_back(std::move(item));
  }
  if (out.size() < n) return raise("not enough values to unpack (expected {}, got {})", n, out.size());
  return out;
}

}  // namespace zinc_rt::jinja
