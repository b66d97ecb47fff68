#include "jinja/format_spec.h"

#include <charconv>
#include <cmath>

#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

constexpr std::int64_t kMaxFloatPrecision = 1000;

std::string times(std::string_view text, std::int64_t n) {
  std::string out;
  for (std::int64_t i = 0; i < n; ++i) out += text;
  return out;
}

// Padding is how many fill characters stand before and after a text.
struct Padding {
  std::int64_t left = 0, right = 0;
};

Result<Padding> padding_of(Runtime& rt, const FormatSpec& spec, std::string_view text, char default_align) {
  auto missing = spec.width - static_cast<std::int64_t>(count_chars(text));
  if (missing <= 0) return Padding{};
  ZRT_CHECK_OK(rt.reserve(static_cast<std::uint64_t>(missing), 4));
  char align = spec.align != 0 ? spec.align : default_align;
  std::int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  return Padding{left, missing - left};
}

Result<std::string> pad(Runtime& rt, const FormatSpec& spec, std::string_view text, char default_align) {
  ZRT_TRY(const Padding padding, padding_of(rt, spec, text, default_align));
  return times(spec.fill, padding.left) + std::string(text) + times(spec.fill, padding.right);
}

std::string grouped(std::string_view digits, char separator, std::size_t every) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % every == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// Puts the parts of a number together: the sign and the prefix, then zeros that fill the width, then the digits and
// `tail`.
Result<std::string> layout_number(Runtime& rt, const FormatSpec& spec, bool negative, std::string_view prefix,
                                  std::string digits, std::string_view tail, std::size_t group) {
  std::string head;
  if (negative) {
    head = "-";
  } else if (spec.sign == '+' || spec.sign == ' ') {
    head = std::string(1, spec.sign);
  }
  head += prefix;
  bool fill_between = spec.align == '=' || (spec.zero && spec.align == 0);
  std::string fill = spec.zero && spec.fill == " " ? "0" : spec.fill;
  if (spec.width > 0) ZRT_CHECK_OK(rt.reserve(static_cast<std::uint64_t>(spec.width), 4));
  if (fill_between && fill == "0" && spec.grouping != 0) {
    // The zeros that fill the width count as digits of the number, so separators are inserted between them too.
    while (static_cast<std::int64_t>(head.size() + grouped(digits, spec.grouping, group).size() + tail.size()) <
           spec.width) {
      if (rt.over(digits.size())) return rt.limit_error();
      digits.insert(0, 1, '0');
    }
    std::string body = grouped(digits, spec.grouping, group);
    return head + body + std::string(tail);
  }
  std::string body = (spec.grouping != 0 ? grouped(digits, spec.grouping, group) : digits) + std::string(tail);
  if (fill_between) {
    auto missing = spec.width - static_cast<std::int64_t>(head.size() + body.size());
    return head + times(fill, missing) + body;
  }
  return pad(rt, spec, head + body, '>');
}

std::string upper_if(std::string text, bool upper) {
  if (upper) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

std::string float_digits(double magnitude, const FormatSpec& spec, char type) {
  char buffer[2048];
  auto precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  std::chars_format how = type == 'e'   ? std::chars_format::scientific
                          : type == 'f' ? std::chars_format::fixed
                                        : std::chars_format::general;
  if (type == 'g' && precision == 0) precision = 1;
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, how, precision).ptr;
  return std::string(buffer, end);
}

Result<FormatSpec> parse_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t pos = 0;
  bool fill_given = false;
  auto peek = [&](std::size_t at) { return at < text.size() ? text[at] : '\0'; };
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    std::size_t first = char_at(text, 0).size;
    if (is_align(peek(first))) {
      spec.fill = std::string(text.substr(0, first));
      spec.align = text[first];
      fill_given = true;
      pos = first + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      pos = 1;
    }
  }
  if (peek(pos) == '+' || peek(pos) == '-' || peek(pos) == ' ') spec.sign = text[pos++];
  if (peek(pos) == '#') {
    spec.alternate = true;
    ++pos;
  }
  if (peek(pos) == '0') {
    spec.zero = true;
    if (!fill_given) spec.fill = "0";
    ++pos;
  }
  auto number = [&](std::int64_t& out) -> Status {
    out = 0;
    for (; pos < text.size() && text[pos] >= '0' && text[pos] <= '9'; ++pos) {
      out = out * 10 + (text[pos] - '0');
      if (out > kMaxFormatWidth) return raise("width or precision {} too big in format specification", out);
    }
    return {};
  };
  ZRT_CHECK_OK(number(spec.width));
  if (peek(pos) == ',' || peek(pos) == '_') spec.grouping = text[pos++];
  if (peek(pos) == '.') {
    ++pos;
    if (peek(pos) < '0' || peek(pos) > '9') return raise("Format specifier missing precision");
    ZRT_CHECK_OK(number(spec.precision));
  }
  if (pos < text.size()) spec.type = text[pos++];
  if (pos < text.size()) return raise("Invalid format specifier {}", repr_of(text));
  return spec;
}

}  // namespace

Result<MarkedText> format_text(Runtime& rt, const FormatSpec& spec, MarkedView text) {
  if (spec.precision >= 0)
    text = text.sub(0, char_offset(text.text(), static_cast<std::size_t>(spec.precision), false));
  const std::string_view fill = spec.zero && spec.align == 0 ? std::string_view("0") : spec.fill;
  ZRT_TRY(const Padding padding, padding_of(rt, spec, text.text(), '<'));
  MarkedText out;
  for (std::int64_t i = 0; i < padding.left; ++i) out.append_own(fill);
  out += text;
  for (std::int64_t i = 0; i < padding.right; ++i) out.append_own(fill);
  return out;
}

Result<std::string> format_integer(Runtime& rt, const FormatSpec& spec, std::int64_t value) {
  std::uint64_t magnitude = value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  char type = spec.type == 0 || spec.type == 'n' ? 'd' : spec.type;
  int base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'd' ? 10 : 16;
  if (type != 'd' && spec.grouping == ',') return raise("Cannot specify ',' with '{}'.", type);
  char buffer[80];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), magnitude, base).ptr;
  std::string digits = upper_if(std::string(buffer, end), type == 'X');
  // For an int, a precision is the minimum number of digits. Only % formatting allows a precision for an int;
  // str.format refuses it earlier.
  if (static_cast<std::int64_t>(digits.size()) < spec.precision) {
    digits.insert(0, static_cast<std::size_t>(spec.precision) - digits.size(), '0');
  }
  std::string prefix;
  if (spec.alternate && type != 'd') prefix = std::string{'0', type};
  return layout_number(rt, spec, value < 0, prefix, digits, "", type == 'd' ? 3 : 4);
}

Result<std::string> format_float(Runtime& rt, const FormatSpec& spec, double value) {
  if (spec.alternate) return raise("the alternate form of a float is not supported");
  if (spec.precision > kMaxFloatPrecision)
    return raise("precision {} too big, {} allowed", spec.precision, kMaxFloatPrecision);
  bool negative = std::signbit(value) && !std::isnan(value);
  double magnitude = std::fabs(value);
  char type = spec.type;
  bool percent = type == '%';
  bool upper = type == 'E' || type == 'F' || type == 'G';
  if (!std::isfinite(value)) {
    std::string name = upper_if(std::isnan(value) ? "nan" : "inf", upper);
    FormatSpec plain = spec;
    plain.grouping = 0;
    return layout_number(rt, plain, negative, "", name, percent ? "%" : "", 3);
  }
  if (percent) magnitude *= 100;
  std::string text;
  if (type == 0 && spec.precision < 0) {
    text = float_repr(magnitude);
  } else if (type == 0) {
    // A float without a type is formatted like g, with two differences: a whole number keeps one decimal, and fixed
    // notation ends one digit earlier.
    text = float_digits(magnitude, spec, 'g');
    std::int64_t precision = spec.precision == 0 ? 1 : spec.precision;
    if (text.find_first_of(".e") == std::string::npos) {
      if (static_cast<std::int64_t>(text.size()) >= precision && magnitude != 0) {
        FormatSpec scientific = spec;
        scientific.precision = precision - 1;
        text = float_digits(magnitude, scientific, 'e');
        std::size_t e = text.find('e');
        std::size_t last = text.find_last_not_of('0', e - 1);
        if (text.find('.') != std::string::npos) {
          if (text[last] == '.') --last;
          text.erase(last + 1, e - last - 1);
        }
      } else {
        text += ".0";
      }
    }
  } else {
    char lower = percent ? 'f' : type == 'n' ? 'g' : static_cast<char>(type | 0x20);
    text = upper_if(float_digits(magnitude, spec, lower), upper);
  }
  std::size_t whole = std::min(text.find_first_of(".eE"), text.size());
  std::string tail = text.substr(whole);
  if (percent) tail += '%';
  return layout_number(rt, spec, negative, "", text.substr(0, whole), tail, 3);
}

Result<MarkedText> format_value(Runtime& rt, const Value& given, std::string_view text) {
  if (text.empty()) return to_str(rt, given);
  const Value value = counted(given);
  ZRT_TRY(FormatSpec spec, parse_spec(text));
  bool float_type = spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  bool int_type = spec.type != 0 && std::string_view("bdoxXn").find(spec.type) != std::string_view::npos;
  if (value.is_str()) {
    if (spec.type != 0 && spec.type != 's') {
      return raise("Unknown format code '{}' for object of type 'str'", spec.type);
    }
    if (spec.sign != 0 || spec.alternate || spec.grouping != 0 || spec.align == '=') {
      return raise("Invalid format specifier {} for object of type 'str'", repr_of(text));
    }
    return format_text(rt, spec, value.view());
  }
  if (value.is_integral() && (spec.type == 0 || int_type)) {
    if (spec.precision >= 0) return raise("Precision not allowed in integer format specifier");
    return as_own(format_integer(rt, spec, value.as_int()));
  }
  if (is_beyond_ints(value) && !float_type) return beyond_ints(value);
  if (value.is_number() && (float_type || (spec.type == 0 || spec.type == 'n'))) {
    return as_own(format_float(rt, spec, value.as_real()));
  }
  if (value.is_number()) {
    return raise("Unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
  }
  return raise("unsupported format string passed to {}.__format__", type_name(value));
}

std::string ascii_only(std::string_view text) {
  std::string out;
  for (std::size_t pos = 0; pos < text.size();) {
    Char c = char_at(text, pos);
    pos += c.size;
    if (c.code < 0x80) {
      out += static_cast<char>(c.code);
    } else if (c.code < 0x100) {
      out += fmt::format("\\x{:02x}", c.code);
    } else if (c.code < 0x10000) {
      out += fmt::format("\\u{:04x}", c.code);
    } else {
      out += fmt::format("\\U{:08x}", c.code);
    }
  }
  return out;
}

}  // namespace zinc_rt::jinja
