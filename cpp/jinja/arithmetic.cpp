// Implements Python's arithmetic on 64-bit integers and doubles. An integer result that does not fit is an error, never
// a wrong number.
#include <charconv>
#include <cmath>

#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd: return "+";
    case BinaryOp::kSub: return "-";
    case BinaryOp::kMul: return "*";
    case BinaryOp::kDiv: return "/";
    case BinaryOp::kFloorDiv: return "//";
    case BinaryOp::kMod: return "%";
    case BinaryOp::kPow: return "**";
  }
  return "?";
}

std::unexpected<Error> overflow() {
  return raise("integer result does not fit into 64 bits");
}

std::unexpected<Error> unsupported(BinaryOp op, const Value& a, const Value& b) {
  return raise("unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

Result<Value> int_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return raise("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow();
  }
  return Value::integer(result);
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Result<Value> int_binary(BinaryOp op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  switch (op) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(a, b, &out)) return overflow();
      return Value::integer(out);
    case BinaryOp::kSub:
      if (__builtin_sub_overflow(a, b, &out)) return overflow();
      return Value::integer(out);
    case BinaryOp::kMul:
      if (__builtin_mul_overflow(a, b, &out)) return overflow();
      return Value::integer(out);
    case BinaryOp::kDiv:
      if (b == 0) return raise("division by zero");
      return Value::real(static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case BinaryOp::kFloorDiv:
      if (b == 0) return raise("integer division or modulo by zero");
      if (b == -1) {
        if (__builtin_sub_overflow(std::int64_t{0}, a, &out)) return overflow();
        return Value::integer(out);
      }
      return Value::integer(a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0));
    case BinaryOp::kMod:
      if (b == 0) return raise("integer modulo by zero");
      return Value::integer(floor_mod(a, b));
    case BinaryOp::kPow: return int_power(a, b);
  }
  return overflow();
}

struct FloatDivision {
  double quotient, rest;
};

// Computes Python's divmod for floats. The remainder has the divisor's sign, and the quotient is a whole number.
FloatDivision float_divide(double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), rest};
  double floored = std::floor(quotient);
  return {quotient - floored > 0.5 ? floored + 1 : floored, rest};
}

Result<Value> float_binary(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd: return Value::real(a + b);
    case BinaryOp::kSub: return Value::real(a - b);
    case BinaryOp::kMul: return Value::real(a * b);
    case BinaryOp::kDiv:
      if (b == 0) return raise("float division by zero");
      return Value::real(a / b);
    case BinaryOp::kFloorDiv:
      if (b == 0) return raise("float floor division by zero");
      return Value::real(float_divide(a, b).quotient);
    case BinaryOp::kMod:
      if (b == 0) return raise("float modulo");
      return Value::real(float_divide(a, b).rest);
    case BinaryOp::kPow: {
      if (a == 0 && b < 0) return raise("0.0 cannot be raised to a negative power");
      if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::trunc(b) != b)
        return raise("complex numbers are not supported");
      double result = std::pow(a, b);
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) return raise("numerical result out of range");
      return Value::real(result);
    }
  }
  return overflow();
}

Result<Value> add_text(Runtime& rt, const Value& a, const Value& b) {
  bool markup = a.as<StrObject>().markup || b.as<StrObject>().markup;
  MarkedText out;
  if (markup) {
    ZRT_TRY(Value left, escape_value(rt, a));
    ZRT_TRY(Value right, escape_value(rt, b));
    out += left.view();
    out += right.view();
  } else {
    out.reserve(a.text().size() + b.text().size());
    out += a.view();
    out += b.view();
  }
  return rt.str(std::move(out), markup);
}

Result<Value> repeat(Runtime& rt, const Value& value, std::int64_t times) {
  auto n = static_cast<std::uint64_t>(times < 0 ? 0 : times);
  if (value.is_str()) {
    const std::string& text = value.text();
    ZRT_CHECK_OK(rt.reserve(text.size(), n));
    MarkedText out;
    if (!text.empty()) {
      const auto& parts = value.as<StrObject>().foreign_parts;
      if (parts) ZRT_CHECK_OK(rt.reserve(parts->size() * sizeof(TextSpan), n));
      out.reserve(text.size() * n);
      for (std::uint64_t i = 0; i < n; ++i) out += value.view();
    }
    return rt.str(std::move(out), value.as<StrObject>().markup);
  }
  const auto& items = value.as<SeqObject>().items;
  ZRT_CHECK_OK(rt.reserve(items.size() * sizeof(Value), n));
  std::vector<Value> out;
  if (!items.empty()) {
    out.reserve(items.size() * n);
    for (std::uint64_t i = 0; i < n; ++i) out.insert(out.end(), items.begin(), items.end());
  }
  return value.is(Kind::kList) ? rt.list(std::move(out)) : rt.tuple(std::move(out));
}

bool repeatable(const Value& value) {
  return value.is_str() || value.is_sequence();
}

}  // namespace

Result<Value> binary(Runtime& rt, BinaryOp op, const Value& a, const Value& b) {
  if (rt.over()) return rt.limit_error();
  if (a.is_number() && b.is_number()) {
    if (a.is(Kind::kNumber) || b.is(Kind::kNumber)) {
      const Value x = counted(a), y = counted(b);
      if (!is_beyond_ints(x) && !is_beyond_ints(y)) return binary(rt, op, x, y);
      if (x.is(Kind::kFloat) || y.is(Kind::kFloat)) return float_binary(op, x.as_real(), y.as_real());
      return beyond_ints(is_beyond_ints(x) ? x : y);
    }
    if (a.is_integral() && b.is_integral()) return int_binary(op, a.as_int(), b.as_int());
    return float_binary(op, a.as_real(), b.as_real());
  }
  if (op == BinaryOp::kMod && a.is_str()) return percent_format(rt, a, b);
  if (a.is_undefined()) return undefined_error(rt, a);
  if (b.is_undefined()) return undefined_error(rt, b);
  if (op == BinaryOp::kAdd) {
    if (a.is_str() && b.is_str()) return add_text(rt, a, b);
    if (a.is_str()) return raise("can only concatenate str (not \"{}\") to str", type_name(b));
    if (a.is_sequence() && a.kind() == b.kind()) {
      const auto& x = a.as<SeqObject>().items;
      const auto& y = b.as<SeqObject>().items;
      std::vector<Value> out;
      out.reserve(x.size() + y.size());
      out.insert(out.end(), x.begin(), x.end());
      out.insert(out.end(), y.begin(), y.end());
      return a.is(Kind::kList) ? rt.list(std::move(out)) : rt.tuple(std::move(out));
    }
  }
  if (op == BinaryOp::kMul) {
    if (repeatable(a) && b.is_integral()) return repeat(rt, a, b.as_int());
    if (a.is_integral() && repeatable(b)) return repeat(rt, b, a.as_int());
  }
  return unsupported(op, a, b);
}

Result<Value> negate(Runtime& rt, const Value& given) {
  const Value value = counted(given);
  if (value.is_undefined()) return undefined_error(rt, value);
  if (is_beyond_ints(value)) {
    const auto& text = value.as<NumberObject>().text;
    return rt.number(text[0] == '-' ? text.substr(1) : "-" + text);
  }
  if (value.is(Kind::kFloat)) return Value::real(-value.as_real());
  if (value.is_integral()) return int_binary(BinaryOp::kSub, 0, value.as_int());
  return raise("bad operand type for unary -: '{}'", type_name(value));
}

Result<Value> plus(Runtime& rt, const Value& given) {
  const Value value = counted(given);
  if (value.is_undefined()) return undefined_error(rt, value);
  if (value.is(Kind::kFloat) || is_beyond_ints(value)) return value;
  if (value.is_integral()) return Value::integer(value.as_int());
  return raise("bad operand type for unary +: '{}'", type_name(value));
}

Result<std::int64_t> float_to_int(double d) {
  if (std::isnan(d)) return raise("cannot convert float NaN to integer");
  if (d >= 9223372036854775808.0 || d < -9223372036854775808.0) return overflow();
  return static_cast<std::int64_t>(d);
}

Result<Value> round_value(Runtime& rt, const Value& given, std::int64_t precision) {
  const Value value = counted(given);
  if (value.is_undefined()) return undefined_error(rt, value);
  if (is_beyond_ints(value)) return precision >= 0 ? Result<Value>(value) : beyond_ints(value);
  if (!value.is_number()) return raise("type {} doesn't define __round__ method", type_name(value));
  if (value.is_integral()) {
    if (precision >= 0) return Value::integer(value.as_int());
    if (precision < -18) return Value::integer(0);
    std::int64_t unit = 1;
    for (std::int64_t i = precision; i < 0; ++i) unit *= 10;
    std::int64_t rest = floor_mod(value.as_int(), unit);
    std::int64_t low = 0;
    if (__builtin_sub_overflow(value.as_int(), rest, &low)) return overflow();
    bool up = rest * 2 > unit || (rest * 2 == unit && (low / unit) % 2 != 0);
    if (up && __builtin_add_overflow(low, unit, &low)) return overflow();
    return Value::integer(low);
  }
  double d = value.as_real();
  // A double has at most 17 significant digits and its exponent is at least -323. So rounding to more than 340 decimals
  // changes no double.
  if (!std::isfinite(d) || precision > 340) return Value::real(d);
  if (precision < -310) return Value::real(std::copysign(0.0, d));
  char buffer[800];
  if (precision >= 0) {
    auto end = std::to_chars(buffer, buffer + sizeof(buffer), d, std::chars_format::fixed, static_cast<int>(precision));
    double rounded = d;
    std::from_chars(buffer, end.ptr, rounded);
    return Value::real(rounded);
  }
  double unit = std::pow(10.0, static_cast<double>(-precision));
  double scaled = d / unit;
  double whole = std::nearbyint(scaled);
  return Value::real(whole * unit);
}

std::optional<double> parse_float(std::string_view text) {
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  std::string clean;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '_') {
      bool between = i > 0 && i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                     std::isdigit(static_cast<unsigned char>(text[i + 1]));
      if (!between) return std::nullopt;
      continue;
    }
    clean += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  std::string_view body = clean;
  bool negative = body.starts_with('-');
  if (negative || body.starts_with('+')) body.remove_prefix(1);
  double value = 0;
  if (body == "inf" || body == "infinity") {
    value = INFINITY;
  } else if (body == "nan") {
    value = NAN;
  } else {
    if (body.empty() || body.find_first_not_of("0123456789.e+-") != std::string_view::npos) return std::nullopt;
    auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
    if (body[0] == '-' || end != body.data() + body.size()) return std::nullopt;
    if (error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) value = std::strtod(std::string(body).c_str(), nullptr);
  }
  return negative ? -value : value;
}

Result<std::optional<std::int64_t>> parse_int(std::string_view text, std::int64_t base) {
  const std::optional<std::int64_t> invalid;
  if (base != 0 && (base < 2 || base > 36)) return invalid;
  text.remove_prefix(leading_space(text));
  text.remove_suffix(trailing_space(text));
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  bool after_digit = false;
  bool automatic = base == 0;
  if (text.size() > 1 && text[0] == '0') {
    char mark = static_cast<char>(text[1] | 0x20);
    std::int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (base == marked || automatic)) {
      base = marked;
      text.remove_prefix(2);
      after_digit = true;  // Python allows an underscore after a prefix such as 0x
      automatic = false;
    }
  }
  if (automatic) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos) return invalid;
  }
  std::int64_t value = 0;
  bool any = false;
  for (char c : text) {
    if (c == '_') {
      if (!after_digit) return invalid;
      after_digit = false;
      continue;
    }
    int digit = c >= '0' && c <= '9'                          ? c - '0'
                : std::isalpha(static_cast<unsigned char>(c)) ? (c | 0x20) - 'a' + 10
                                                              : 99;
    if (digit >= base) return invalid;
    after_digit = any = true;
    if (__builtin_mul_overflow(value, base, &value) || __builtin_sub_overflow(value, digit, &value)) return overflow();
  }
  if (!any || !after_digit) return invalid;
  if (negative) return std::optional(value);
  if (__builtin_sub_overflow(std::int64_t{0}, value, &value)) return overflow();
  return std::optional(value);
}

}  // namespace zinc_rt::jinja
