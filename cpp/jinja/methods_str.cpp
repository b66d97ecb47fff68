// Implements the methods of str that search, test, pad and change case.
#include <algorithm>

#include "jinja/call.h"
#include "jinja/loop.h"
#include "jinja/methods.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

Value same_kind(Runtime& rt, const Value& self, MarkedText text) {
  return rt.str(std::move(text), self.as<StrObject>().markup);
}

template <std::string (*map)(std::string_view)>
Result<Value> map_text(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("str method", args));
  if (rt.over(self.text().size() / 64)) return rt.limit_error();
  return same_kind(rt, self, map_marked(self.view(), map));
}

// Returns whether the text has at least one character and every character has one of the flags.
template <std::uint16_t flags>
bool all_chars(std::string_view text) {
  for (std::size_t pos = 0; pos < text.size();) {
    Char c = char_at(text, pos);
    if ((char_flags(c.code) & flags) == 0) return false;
    pos += c.size;
  }
  return !text.empty();
}

bool is_printable_text(std::string_view text) {
  return text.empty() || all_chars<kPrintable>(text);
}

bool is_ascii_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Returns whether the text has cased characters and all of them have the wanted case.
template <std::uint16_t wanted, std::uint16_t other>
bool all_cased(std::string_view text) {
  bool any = false;
  for (std::size_t pos = 0; pos < text.size();) {
    Char c = char_at(text, pos);
    std::uint16_t flags = char_flags(c.code);
    if (flags & other) return false;
    any = any || (flags & wanted) != 0;
    pos += c.size;
  }
  return any;
}

bool is_title_text(std::string_view text) {
  bool any = false;
  bool after_cased = false;
  for (std::size_t pos = 0; pos < text.size();) {
    Char c = char_at(text, pos);
    std::uint16_t flags = char_flags(c.code);
    bool upper = (flags & (kUpper | kTitle)) != 0;
    bool lower = (flags & kLower) != 0;
    if (upper && after_cased) return false;
    if (lower && !after_cased) return false;
    after_cased = upper || lower;
    any = any || after_cased;
    pos += c.size;
  }
  return any;
}

bool is_identifier(std::string_view text) {
  if (!all_chars<kIdent>(text)) return false;
  Char first = char_at(text, 0);
  return first.code == '_' || (char_flags(first.code) & (kAlpha | kNumeric)) == kAlpha;
}

template <bool (*test)(std::string_view)>
Result<Value> test_text(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("str method", args));
  if (rt.over(self.text().size() / 64)) return rt.limit_error();
  return Value::boolean(test(self.text()));
}

// Window is the part of a text in which find, count and similar methods search: the characters between their arguments
// start and end, by Python's rules for slices.
struct Window {
  std::string_view text;
  std::int64_t first_char = 0;
  bool empty_beyond = false;  // start is after the end, so nothing is found, not even ""
};

Result<Window> window(Runtime& rt, const Value& self, const Value& start, const Value& stop) {
  const auto& str = self.as<StrObject>();
  if (start.is_missing() && stop.is_missing()) return Window{str.text, 0, false};
  ZRT_TRY(std::int64_t size, length(rt, self));
  auto clip = [&](const Value& value, std::int64_t otherwise) -> Result<std::int64_t> {
    if (value.is_missing() || value.is_none()) return otherwise;
    ZRT_TRY(std::int64_t i, need_int("slice index", value));
    if (i < 0) i = std::max<std::int64_t>(0, i + size);
    return i;
  };
  ZRT_TRY(std::int64_t from, clip(start, 0));
  ZRT_TRY(std::int64_t to, clip(stop, size));
  to = std::min(to, size);
  if (from > size || from > to) return Window{{}, from, true};
  std::size_t a = char_offset(str.text, static_cast<std::size_t>(from), is_ascii(str));
  std::size_t b = char_offset(str.text, static_cast<std::size_t>(to), is_ascii(str));
  return Window{std::string_view(str.text).substr(a, b - a), from, false};
}

enum class Find { kFirst, kLast };

template <Find which, bool must>
Result<Value> find(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("find", args, {"", "", ""}, 1));
  ZRT_TRY(std::string_view needle, need_str("find() argument 1", a[0]));
  ZRT_TRY(Window w, window(rt, self, a[1], a[2]));
  if (rt.over((w.text.size() + needle.size()) / 256)) return rt.limit_error();
  std::size_t at = std::string::npos;
  if (!w.empty_beyond) at = which == Find::kFirst ? find_text(w.text, needle) : rfind_text(w.text, needle);
  if (at != std::string::npos) {
    return Value::integer(w.first_char + static_cast<std::int64_t>(count_chars(w.text.substr(0, at))));
  }
  if (must) return raise("substring not found");
  return Value::integer(-1);
}

Result<Value> count(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("count", args, {"", "", ""}, 1));
  ZRT_TRY(std::string_view needle, need_str("count() argument 1", a[0]));
  ZRT_TRY(Window w, window(rt, self, a[1], a[2]));
  if (rt.over((w.text.size() + needle.size()) / 64)) return rt.limit_error();
  if (w.empty_beyond) return Value::integer(0);
  if (needle.empty()) return Value::integer(static_cast<std::int64_t>(count_chars(w.text)) + 1);
  std::int64_t n = 0;
  for (std::size_t at = 0; (at = find_text(w.text, needle, at)) != std::string::npos; at += needle.size()) ++n;
  return Value::integer(n);
}

template <bool at_end>
Result<Value> starts_or_ends(Runtime& rt, const Value& self, Args& args) {
  std::string_view name = at_end ? "endswith" : "startswith";
  ZRT_TRY(auto a, bind(name, args, {"", "", ""}, 1));
  ZRT_TRY(Window w, window(rt, self, a[1], a[2]));
  auto matches = [&](std::string_view part) {
    return !w.empty_beyond && (at_end ? w.text.ends_with(part) : w.text.starts_with(part));
  };
  if (a[0].is_str()) return Value::boolean(matches(a[0].text()));
  if (!a[0].is(Kind::kTuple)) {
    return raise("{} first arg must be str or a tuple of str, not {}", name, type_name(a[0]));
  }
  for (const Value& part : a[0].as<SeqObject>().items) {
    if (rt.over()) return rt.limit_error();
    if (!part.is_str()) return raise("tuple for {} must only contain str, not {}", name, type_name(part));
    if (matches(part.text())) return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <char side>
Result<Value> justify(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("justify", args, {"", ""}, 1));
  ZRT_TRY(std::int64_t width, need_int("width", a[0]));
  MarkedView fill(" ");
  if (!a[1].is_missing()) {
    ZRT_TRY(std::string_view given, need_str("the fill character", a[1]));
    if (count_chars(given) != 1) return raise("The fill character must be exactly one character long");
    fill = a[1].view();
  }
  ZRT_TRY(std::int64_t size, length(rt, self));
  if (width <= size) return self;
  std::int64_t missing = width - size;
  ZRT_CHECK_OK(rt.reserve(fill.size(), static_cast<std::uint64_t>(missing)));
  // If both the number of spaces and the width are odd, str.center puts the extra space on the left.
  std::int64_t left = side == 'l' ? 0 : side == 'r' ? missing : missing / 2 + (missing & width & 1);
  MarkedText out;
  for (std::int64_t i = 0; i < left; ++i) out += fill;
  out += self.view();
  for (std::int64_t i = left; i < missing; ++i) out += fill;
  return same_kind(rt, self, std::move(out));
}

Result<Value> zfill(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("zfill", args, {""}, 1));
  ZRT_TRY(std::int64_t width, need_int("width", a[0]));
  ZRT_TRY(std::int64_t size, length(rt, self));
  if (width <= size) return self;
  ZRT_CHECK_OK(rt.reserve(static_cast<std::uint64_t>(width - size)));
  const std::size_t sign = self.text().starts_with('-') || self.text().starts_with('+') ? 1 : 0;
  MarkedText out(self.view().sub(0, sign));
  out.append_own(std::string(static_cast<std::size_t>(width - size), '0'));
  out += self.view().sub(sign);
  return same_kind(rt, self, std::move(out));
}

Result<Value> expandtabs(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("expandtabs", args, {"tabsize"}, 0));
  std::int64_t size = 8;
  if (!a[0].is_missing()) {
    ZRT_TRY(size, need_int("tabsize", a[0]));
  }
  size = std::max<std::int64_t>(size, 0);
  const std::string& text = self.text();
  auto tabs = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\t'));
  ZRT_CHECK_OK(rt.reserve(static_cast<std::uint64_t>(size), tabs));
  MarkedText out;
  std::int64_t column = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    Char c = char_at(text, pos);
    if (c.code == '\t') {
      std::int64_t n = size > 0 ? size - column % size : 0;
      out.append_own(std::string(static_cast<std::size_t>(n), ' '));
      column += n;
    } else {
      out += self.view().sub(pos, c.size);
      column = c.code == '\n' || c.code == '\r' ? 0 : column + 1;
    }
    pos += c.size;
  }
  return same_kind(rt, self, std::move(out));
}

Result<Value> format(Runtime& rt, const Value& self, Args& args) {
  if (self.as<StrObject>().markup) {
    for (Value& value : args.positional) {
      ZRT_TRY(value, escape_value(rt, value));
    }
    for (auto& [name, value] : args.named) {
      ZRT_TRY(value, escape_value(rt, value));
    }
  }
  ZRT_TRY(MarkedText out, str_format(rt, self.view(), args));
  return same_kind(rt, self, std::move(out));
}

Result<Value> format_map(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("format_map", args, {""}, 1));
  if (!a[0].is(Kind::kDict)) return raise("format_map() wants a mapping, not {}", type_name(a[0]));
  Args named;
  for (const auto& [key, value] : a[0].as<DictObject>().items) {
    if (rt.over()) return rt.limit_error();
    if (key.is_str()) named.named.emplace_back(key.text(), value);
  }
  return format(rt, self, named);
}

Result<Value> encode(Runtime&, const Value&, Args&) {
  return raise("bytes are not supported (str.encode)");
}

constexpr Builtin kStrMethods[] = {
    {"capitalize", map_text<to_capitalized>},
    {"casefold", map_text<to_folded>},
    {"center", justify<'c'>},
    {"count", count},
    {"encode", encode},
    {"endswith", starts_or_ends<true>},
    {"expandtabs", expandtabs},
    {"find", find<Find::kFirst, false>},
    {"format", format},
    {"format_map", format_map},
    {"index", find<Find::kFirst, true>},
    {"isalnum", test_text<all_chars<kAlnum>>},
    {"isalpha", test_text<all_chars<kAlpha>>},
    {"isascii", test_text<is_ascii_text>},
    {"isdecimal", test_text<all_chars<kDecimal>>},
    {"isdigit", test_text<all_chars<kDigit>>},
    {"isidentifier", test_text<is_identifier>},
    {"islower", test_text<all_cased<kLower, kUpper | kTitle>>},
    {"isnumeric", test_text<all_chars<kNumeric>>},
    {"isprintable", test_text<is_printable_text>},
    {"isspace", test_text<all_chars<kSpace>>},
    {"istitle", test_text<is_title_text>},
    {"isupper", test_text<all_cased<kUpper, kLower | kTitle>>},
    {"ljust", justify<'l'>},
    {"lower", map_text<to_lower>},
    {"rfind", find<Find::kLast, false>},
    {"rindex", find<Find::kLast, true>},
    {"rjust", justify<'r'>},
    {"startswith", starts_or_ends<false>},
    {"swapcase", map_text<to_swapped>},
    {"title", map_text<to_title>},
    {"upper", map_text<to_upper>},
    {"zfill", zfill},
};

}  // namespace

const Builtin* find_str_method(std::string_view name) {
  auto at = std::lower_bound(std::begin(kStrMethods), std::end(kStrMethods), name,
                             [](const Builtin& method, std::string_view wanted) { return method.name < wanted; });
  if (at != std::end(kStrMethods) && at->name == name) return at;
  return find_split_method(name);
}

}  // namespace zinc_rt::jinja
