// Implements the tests that may stand after `is`, such as `x is defined`.
#include <algorithm>

#include "jinja/call.h"
#include "jinja/methods.h"
#include "jinja/ops.h"

namespace zinc_rt::jinja {

namespace {

template <bool (*test)(const Value&)>
Result<Value> check(Runtime&, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("test", args));
  return Value::boolean(test(self));
}

template <CompareOp op>
Result<Value> comparison(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("comparison", args, {""}, 1));
  ZRT_TRY(bool holds, compare(rt, op, self, a[0]));
  return Value::boolean(holds);
}

Result<Value> remainder_is(Runtime& rt, const Value& value, const Value& divisor, std::int64_t wanted) {
  ZRT_TRY(Value rest, binary(rt, BinaryOp::kMod, value, divisor));
  ZRT_TRY(bool same, equals(rt, rest, Value::integer(wanted)));
  return Value::boolean(same);
}

template <std::int64_t wanted>
Result<Value> parity(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("test", args));
  return remainder_is(rt, self, Value::integer(2), wanted);
}

Result<Value> divisible_by(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("divisibleby", args, {"num"}, 1));
  return remainder_is(rt, self, a[0], 0);
}

Result<Value> is_in(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("in", args, {"seq"}, 1));
  ZRT_TRY(bool inside, contains(rt, a[0], self));
  return Value::boolean(inside);
}

Result<Value> same_as(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("sameas", args, {"other"}, 1));
  if (self.kind() != a[0].kind()) return Value::boolean(false);
  // `sameas` means Python's `is`. In Python, constants and equal small values are usually the same object, so they are
  // compared by value. Two containers are the same only if they are one object.
  if (self.kind() < Kind::kUndefined || self.is_str()) {
    ZRT_TRY(bool same, equals(rt, self, a[0]));
    return Value::boolean(same);
  }
  return Value::boolean(self.object() == a[0].object());
}

template <std::string_view const& method>
Result<Value> text_test(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(MarkedText text, to_str(rt, self));
  return find_str_method(method)->call(rt, rt.str(std::move(text)), args);
}
constexpr std::string_view kIsLower = "islower";
constexpr std::string_view kIsUpper = "isupper";

Result<Value> is_filter(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("filter", args));
  ZRT_CHECK_OK(hash_of(rt, self));  // fails if the value cannot be a dict's key
  return Value::boolean(self.is_str() && find_filter(self.text()) != nullptr);
}

Result<Value> is_test(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("test", args));
  ZRT_CHECK_OK(hash_of(rt, self));  // fails if the value cannot be a dict's key
  return Value::boolean(self.is_str() && find_test(self.text()) != nullptr);
}

bool is_defined(const Value& v) {
  return !v.is_undefined();
}
bool is_undefined(const Value& v) {
  return v.is_undefined();
}
bool is_none(const Value& v) {
  return v.is_none();
}
bool is_boolean(const Value& v) {
  return v.is(Kind::kBool);
}
bool is_true(const Value& v) {
  return v.is(Kind::kBool) && v.as_bool();
}
bool is_false(const Value& v) {
  return v.is(Kind::kBool) && !v.as_bool();
}
bool is_integer(const Value& v) {
  return v.is(Kind::kInt) || (v.is(Kind::kNumber) && v.as<NumberObject>().is_whole);
}
bool is_float(const Value& v) {
  return v.is(Kind::kFloat) || (v.is(Kind::kNumber) && !v.as<NumberObject>().is_whole);
}
bool is_number(const Value& v) {
  return v.is_number();
}
bool is_string(const Value& v) {
  return v.is_str();
}
bool is_mapping(const Value& v) {
  return v.is(Kind::kDict);
}
bool is_sequence(const Value& v) {
  return v.is_str() || v.is_sequence() || v.is(Kind::kDict) || v.is(Kind::kRange) || v.is_undefined();
}
bool can_iterate(const Value& v) {
  return is_iterable(v) || v.is(Kind::kLoop);
}
bool is_escaped(const Value& v) {
  return v.is_str() && v.as<StrObject>().markup;
}
bool is_callable(const Value& v) {
  switch (v.kind()) {
    case Kind::kBuiltin:
    case Kind::kMethod:
    case Kind::kMacro:
    case Kind::kLoop:
    case Kind::kJoiner:
    case Kind::kUndefined: return true;
    default: return false;
  }
}

constexpr Builtin kTests[] = {
    {"!=", comparison<CompareOp::kNe>},
    {"<", comparison<CompareOp::kLt>},
    {"<=", comparison<CompareOp::kLe>},
    {"==", comparison<CompareOp::kEq>},
    {">", comparison<CompareOp::kGt>},
    {">=", comparison<CompareOp::kGe>},
    {"boolean", check<is_boolean>},
    {"callable", check<is_callable>},
    {"defined", check<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", comparison<CompareOp::kEq>},
    {"equalto", comparison<CompareOp::kEq>},
    {"escaped", check<is_escaped>},
    {"even", parity<0>},
    {"false", check<is_false>},
    {"filter", is_filter},
    {"float", check<is_float>},
    {"ge", comparison<CompareOp::kGe>},
    {"greaterthan", comparison<CompareOp::kGt>},
    {"gt", comparison<CompareOp::kGt>},
    {"in", is_in},
    {"integer", check<is_integer>},
    {"iterable", check<can_iterate>},
    {"le", comparison<CompareOp::kLe>},
    {"lessthan", comparison<CompareOp::kLt>},
    {"lower", text_test<kIsLower>},
    {"lt", comparison<CompareOp::kLt>},
    {"mapping", check<is_mapping>},
    {"ne", comparison<CompareOp::kNe>},
    {"none", check<is_none>},
    {"number", check<is_number>},
    {"odd", parity<1>},
    {"sameas", same_as},
    {"sequence", check<is_sequence>},
    {"string", check<is_string>},
    {"test", is_test},
    {"true", check<is_true>},
    {"undefined", check<is_undefined>},
    {"upper", text_test<kIsUpper>},
};

}  // namespace

const Builtin* find_test(std::string_view name) {
  auto at = std::lower_bound(std::begin(kTests), std::end(kTests), name,
                             [](const Builtin& test, std::string_view wanted) { return test.name < wanted; });
  return at != std::end(kTests) && at->name == name ? at : nullptr;
}

}  // namespace zinc_rt::jinja
