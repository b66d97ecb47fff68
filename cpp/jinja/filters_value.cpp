// Implements the filters on single values: numbers, defaults, attributes, JSON.
#include <algorithm>
#include <cmath>

#include "jinja/filters.h"
#include "jinja/json.h"
#include "jinja/ops.h"

namespace zinc_rt::jinja::filters {

Result<Value> abs(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("abs", args));
  const Value value = counted(self);
  if (value.is(Kind::kFloat)) return Value::real(std::fabs(value.as_real()));
  if (!value.is_number()) return raise("bad operand type for abs(): '{}'", type_name(self));
  return value.as_real() < 0 ? negate(rt, self) : plus(rt, self);
}

Result<Value> attr(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("attr", args, {"name"}, 1));
  ZRT_TRY(std::string_view name, need_str("name", a[0]));
  if (self.is_undefined()) return undefined_error(rt, self);
  ZRT_TRY(Value found, own_attribute(rt, self, name));
  return found.is_missing() ? rt.undefined_member(self, a[0]) : found;
}

Result<Value> default_value(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("default", args, {"default_value", "boolean"}, 0));
  if (!self.is_undefined() && !(truthy(a[1]) && !truthy(self))) return self;
  return a[0].is_missing() ? rt.str("") : a[0];
}

Result<Value> to_int(Runtime& rt, const Value& given, Args& args) {
  const Value self = counted(given);
  ZRT_TRY(auto a, bind("int", args, {"default", "base"}, 0));
  Value otherwise = a[0].is_missing() ? Value::integer(0) : a[0];
  // Jinja first tries int(text, base) and then int(float(text)). With an invalid base the first attempt fails, but the
  // second may succeed, so the error is not reported.
  std::int64_t base = a[1].is_missing() ? 10 : a[1].is_integral() ? a[1].as_int() : 1;
  if (self.is_undefined()) return undefined_error(rt, self);
  if (self.is_integral()) return Value::integer(self.as_int());
  if (is_beyond_ints(self)) return self;
  if (self.is(Kind::kFloat)) {
    if (std::isnan(self.as_real())) return otherwise;
    ZRT_TRY(std::int64_t whole, float_to_int(self.as_real()));
    return Value::integer(whole);
  }
  if (!self.is_str()) return otherwise;
  ZRT_TRY(auto parsed, parse_int(self.text(), base));
  if (parsed) return Value::integer(*parsed);
  std::optional<double> number = parse_float(self.text());
  if (!number || !std::isfinite(*number)) return otherwise;
  ZRT_TRY(std::int64_t whole, float_to_int(*number));
  return Value::integer(whole);
}

Result<Value> to_float(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("float", args, {"default"}, 0));
  if (self.is_undefined()) return undefined_error(rt, self);
  if (self.is_number()) return Value::real(self.as_real());
  std::optional<double> number;
  if (self.is_str()) number = parse_float(self.text());
  if (number) return Value::real(*number);
  return a[0].is_missing() ? Value::real(0) : a[0];
}

Result<Value> round(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("round", args, {"precision", "method"}, 0));
  std::int64_t precision = 0;
  if (!a[0].is_missing()) {
    ZRT_TRY(precision, need_int("precision", a[0]));
  }
  std::string_view method = "common";
  if (!a[1].is_missing()) {
    ZRT_TRY(method, need_str("method", a[1]));
  }
  if (method == "common") return round_value(rt, self, precision);
  if (method != "ceil" && method != "floor") return raise("method must be common, ceil or floor");
  // Computes func(value * 10 ** precision) / 10 ** precision as Jinja does. func (ceil or floor) returns an int.
  ZRT_TRY(Value unit, binary(rt, BinaryOp::kPow, Value::integer(10), Value::integer(precision)));
  ZRT_TRY(Value scaled, binary(rt, BinaryOp::kMul, self, unit));
  if (!scaled.is_number()) return raise("must be real number, not {}", type_name(scaled));
  if (scaled.is(Kind::kFloat)) {
    double d = scaled.as_real();
    ZRT_TRY(std::int64_t whole, float_to_int(method == "ceil" ? std::ceil(d) : std::floor(d)));
    scaled = Value::integer(whole);
  }
  return binary(rt, BinaryOp::kDiv, scaled, unit);
}

Result<Value> tojson(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
  JsonStyle style;
  style.ensure_ascii = truthy(a[0]);
  style.sort_keys = truthy(a[3]);
  bool is_foreign_style = a[1].is_str() && a[1].view().has_marks();
  if (a[1].is_str()) {
    style.indent = a[1].text();
  } else if (!a[1].is_missing() && !a[1].is_none()) {
    ZRT_TRY(std::int64_t indent, need_int("indent", a[1]));
    indent = std::max<std::int64_t>(indent, 0);
    ZRT_CHECK_OK(rt.reserve(static_cast<std::uint64_t>(indent)));
    style.indent = std::string(static_cast<std::size_t>(indent), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (!a[2].is_missing() && !a[2].is_none()) {
    ZRT_TRY(std::vector<Value> separators, unpack(rt, a[2], 2));
    ZRT_TRY(std::string_view item, need_str("the item separator", separators[0]));
    ZRT_TRY(std::string_view key, need_str("the key separator", separators[1]));
    style.item_separator = item;
    style.key_separator = key;
    for (const Value& separator : separators) is_foreign_style = is_foreign_style || separator.view().has_marks();
  }
  ZRT_TRY(MarkedText text, to_json(rt, self, style));
  if (is_foreign_style) text.mark_all();
  return rt.str(std::move(text));
}

}  // namespace zinc_rt::jinja::filters
