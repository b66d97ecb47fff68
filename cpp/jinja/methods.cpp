// Implements the methods of dict, list, tuple and the smaller types. Methods that would change their object are
// forbidden, as in Jinja's immutable sandbox.
#include "jinja/methods.h"

#include <algorithm>

#include "jinja/call.h"
#include "jinja/loop.h"
#include "jinja/ops.h"

namespace zinc_rt::jinja {

namespace {

template <ViewKind view>
Result<Value> dict_view(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("dict view", args));
  auto* object = new DictViewObject;
  object->kind = Kind::kDictView;
  object->dict = self;
  object->view = view;
  return rt.heap().adopt(object, sizeof(DictViewObject), 0);
}

Result<Value> dict_get_method(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("get", args, {"", ""}, 1));
  ZRT_TRY(const Value* found, dict_find(rt, self.as<DictObject>(), a[0]));
  if (found != nullptr) return *found;
  return a[1].is_missing() ? Value::none() : a[1];
}

Result<Value> dict_copy(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("copy", args));
  Value copy = rt.dict();
  ZRT_CHECK_OK(dict_update(rt, copy.as<DictObject>(), self));
  return copy;
}

Result<Value> list_copy(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("copy", args));
  ZRT_TRY(std::vector<Value> items, to_vector(rt, self));
  return rt.list(std::move(items));
}

Result<Value> sequence_count(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("count", args, {""}, 1));
  std::int64_t n = 0;
  Cursor cursor(self);
  Value item;
  for (;;) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) return Value::integer(n);
    ZRT_TRY(bool same, equals(rt, item, a[0]));
    n += same ? 1 : 0;
  }
}

Result<Value> sequence_index(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("index", args, {"", "", ""}, 1));
  ZRT_TRY(std::int64_t size, length(rt, self));
  std::int64_t bounds[2] = {0, size};
  for (int i = 0; i < 2; ++i) {
    if (a[static_cast<std::size_t>(i) + 1].is_missing()) continue;
    ZRT_TRY(bounds[i], need_int("index", a[static_cast<std::size_t>(i) + 1]));
    if (bounds[i] < 0) bounds[i] = std::max<std::int64_t>(0, bounds[i] + size);
  }
  Cursor cursor(self);
  Value item;
  for (std::int64_t i = 0;; ++i) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more || i >= bounds[1]) break;
    if (i < bounds[0]) continue;
    ZRT_TRY(bool same, equals(rt, item, a[0]));
    if (same) return Value::integer(i);
  }
  ZRT_TRY(const MarkedText text, to_repr(rt, a[0]));
  return raise("{} is not in {}", text.text(), type_name(self));
}

Result<Value> bit_length(Runtime&, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("bit_length", args));
  std::int64_t i = self.as_int();
  std::uint64_t magnitude = i < 0 ? 0 - static_cast<std::uint64_t>(i) : static_cast<std::uint64_t>(i);
  return Value::integer(magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude));
}

Result<Value> is_integer(Runtime&, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("is_integer", args));
  double d = self.as_real();
  return Value::boolean(d - d == 0 && static_cast<double>(static_cast<long double>(__builtin_trunc(d))) == d);
}

Result<Value> cycler_next(Runtime&, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("next", args));
  auto& cycler = self.as<CyclerObject>();
  Value current = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return current;
}

Result<Value> cycler_reset(Runtime&, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("reset", args));
  self.as<CyclerObject>().position = 0;
  return Value::none();
}

constexpr Builtin kDictMethods[] = {
    {"copy", dict_copy},
    {"get", dict_get_method},
    {"items", dict_view<ViewKind::kItems>},
    {"keys", dict_view<ViewKind::kKeys>},
    {"values", dict_view<ViewKind::kValues>},
};
constexpr Builtin kListMethods[] = {{"copy", list_copy}, {"count", sequence_count}, {"index", sequence_index}};
constexpr Builtin kSequenceMethods[] = {{"count", sequence_count}, {"index", sequence_index}};
constexpr Builtin kIntMethods[] = {{"bit_length", bit_length}};
constexpr Builtin kFloatMethods[] = {{"is_integer", is_integer}};
constexpr Builtin kCyclerMethods[] = {{"next", cycler_next}, {"reset", cycler_reset}};

constexpr std::string_view kDictForbidden[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kListForbidden[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};

template <std::size_t N>
const Builtin* find_in(const Builtin (&methods)[N], std::string_view name) {
  for (const Builtin& method : methods) {
    if (method.name == name) return &method;
  }
  return nullptr;
}

template <std::size_t N>
bool is_in(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

const Builtin* find_method(const Value& object, std::string_view name, bool& forbidden) {
  switch (object.kind()) {
    case Kind::kStr: return find_str_method(name);
    case Kind::kDict: forbidden = is_in(kDictForbidden, name); return find_in(kDictMethods, name);
    case Kind::kList: forbidden = is_in(kListForbidden, name); return find_in(kListMethods, name);
    case Kind::kTuple:
    case Kind::kRange: return find_in(kSequenceMethods, name);
    case Kind::kBool:
    case Kind::kInt: return find_in(kIntMethods, name);
    case Kind::kFloat: return find_in(kFloatMethods, name);
    case Kind::kNumber: return object.as<NumberObject>().is_whole ? nullptr : find_in(kFloatMethods, name);
    case Kind::kCycler: return find_in(kCyclerMethods, name);
    default: return nullptr;
  }
}

}  // namespace zinc_rt::jinja
