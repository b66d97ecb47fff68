// Implements str() and repr() of values.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "jinja/call.h"
#include "jinja/loop.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

template <class Items, class Append>
Status append_items(Runtime& rt, MarkedText& out, const Items& items, Append append) {
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ", ";
    first = false;
    // The limit is checked for each item. The text can be far larger than the values, because one value may be
    // referenced many times.
    ZRT_CHECK_OK(rt.reserve(out.held_bytes()));
    ZRT_CHECK_OK(append(item));
  }
  return {};
}

Status append_pair(Runtime& rt, MarkedText& out, const std::pair<Value, Value>& item, std::string_view between) {
  ZRT_CHECK_OK(append_repr(rt, out, item.first));
  out.append_own(between);
  return append_repr(rt, out, item.second);
}

Status append_dict(Runtime& rt, MarkedText& out, const DictObject& dict) {
  out += '{';
  ZRT_CHECK_OK(append_items(rt, out, dict.items, [&](const auto& item) { return append_pair(rt, out, item, ": "); }));
  out += '}';
  return {};
}

Status append_view(Runtime& rt, MarkedText& out, const DictViewObject& view) {
  out += view.view == ViewKind::kKeys     ? "dict_keys(["
         : view.view == ViewKind::kValues ? "dict_values(["
                                          : "dict_items([";
  ZRT_CHECK_OK(append_items(rt, out, view.dict.as<DictObject>().items, [&](const auto& item) -> Status {
    if (view.view == ViewKind::kKeys) return append_repr(rt, out, item.first);
    if (view.view == ViewKind::kValues) return append_repr(rt, out, item.second);
    out += '(';
    ZRT_CHECK_OK(append_pair(rt, out, item, ", "));
    out += ')';
    return {};
  }));
  out += "])";
  return {};
}

Status append_sequence(Runtime& rt, MarkedText& out, const Value& value) {
  const auto& items = value.as<SeqObject>().items;
  bool is_list = value.is(Kind::kList);
  out += is_list ? '[' : '(';
  ZRT_CHECK_OK(append_items(rt, out, items, [&](const Value& item) { return append_repr(rt, out, item); }));
  if (!is_list && items.size() == 1) out += ',';
  out += is_list ? ']' : ')';
  return {};
}

// Appends what stands between the quotes of a repr: the text with Python's escapes.
void append_escaped(std::string& out, std::string_view text, char quote) {
  for (std::size_t pos = 0; pos < text.size();) {
    Char c = char_at(text, pos);
    pos += c.size;
    if (c.code == static_cast<unsigned char>(quote) || c.code == '\\') {
      out += '\\';
      out += static_cast<char>(c.code);
    } else if (c.code == '\n') {
      out += "\\n";
    } else if (c.code == '\r') {
      out += "\\r";
    } else if (c.code == '\t') {
      out += "\\t";
    } else if (c.code >= kInvalidChar) {
      out += fmt::format("\\udc{:02x}", c.code - kInvalidChar);
    } else if (char_flags(c.code) & kPrintable) {
      append_char(out, c.code);
    } else if (c.code < 0x100) {
      out += fmt::format("\\x{:02x}", c.code);
    } else if (c.code < 0x10000) {
      out += fmt::format("\\u{:04x}", c.code);
    } else {
      out += fmt::format("\\U{:08x}", c.code);
    }
  }
}

void append_quoted(MarkedText& out, MarkedView view) {
  const std::string_view text = view.text();
  bool has_single = text.find('\'') != std::string_view::npos;
  bool has_double = text.find('"') != std::string_view::npos;
  char quote = has_single && !has_double ? '"' : '\'';
  out += quote;
  // Each marked or unmarked run can be escaped separately, because it consists of whole characters.
  view.for_each_run([&](std::string_view run, bool is_foreign) {
    std::string escaped;
    append_escaped(escaped, run, quote);
    out.append(escaped, is_foreign);
  });
  out += quote;
}

Status append_object(Runtime& rt, MarkedText& out, const Value& value) {
  Runtime::Level level(rt);
  if (rt.too_deep()) return rt.depth_error();
  switch (value.kind()) {
    case Kind::kList:
    case Kind::kTuple: return append_sequence(rt, out, value);
    case Kind::kDict: return append_dict(rt, out, value.as<DictObject>());
    case Kind::kDictView: return append_view(rt, out, value.as<DictViewObject>());
    case Kind::kRange: {
      const auto& range = value.as<RangeObject>();
      out.append_own(fmt::format("range({}, {}", range.start, range.stop));
      out.append_own(range.step == 1 ? ")" : fmt::format(", {})", range.step));
      return {};
    }
    case Kind::kNamespace:
      out += "<Namespace ";
      ZRT_CHECK_OK(append_repr(rt, out, value.as<NamespaceObject>().attributes));
      out += '>';
      return {};
    case Kind::kMacro: {
      const MacroProto& proto = *value.as<MacroObject>().proto;
      out.append_own(proto.name.empty() ? std::string("<Macro anonymous>")
                                        : fmt::format("<Macro {}>", repr_of(proto.name)));
      return {};
    }
    case Kind::kLoop: {
      auto& loop = value.as<LoopObject>();
      ZRT_TRY(std::int64_t total, loop.total(rt));
      out.append_own(fmt::format("<LoopContext {}/{}>", loop.index0 + 1, total));
      return {};
    }
    default:
      // Python would also print the object's address, which differs from run to run.
      out.append_own(fmt::format("<{} object>", type_name(value)));
      return {};
  }
}

}  // namespace

std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), d, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  std::string sign = text[0] == '-' ? "-" : "";
  text.remove_prefix(sign.size());
  std::size_t e = text.find('e');
  int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  int n = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string mantissa = n > 1 ? digits.substr(0, 1) + "." + digits.substr(1) : digits;
    return fmt::format("{}{}e{}{:02d}", sign, mantissa, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (n <= exponent + 1) return sign + digits + std::string(static_cast<std::size_t>(exponent + 1 - n), '0') + ".0";
  auto point = static_cast<std::size_t>(exponent + 1);
  return sign + digits.substr(0, point) + "." + digits.substr(point);
}

std::string repr_of(std::string_view text) {
  MarkedText out;
  append_quoted(out, MarkedView(text));
  return out.take_text();
}

Status append_repr(Runtime& rt, MarkedText& out, const Value& value) {
  if (rt.over()) return rt.limit_error();
  switch (value.kind()) {
    case Kind::kMissing: return {};
    case Kind::kNone: out += "None"; return {};
    case Kind::kBool: out += value.as_bool() ? "True" : "False"; return {};
    case Kind::kInt: out.append_own(std::to_string(value.as_int())); return {};
    case Kind::kFloat: out.append_own(float_repr(value.as_real())); return {};
    case Kind::kNumber: out.append_own(value.as<NumberObject>().text); return {};
    case Kind::kBuiltin: out.append_own(fmt::format("<function {}>", value.as_builtin()->name)); return {};
    case Kind::kUndefined: out += "Undefined"; return {};
    case Kind::kStr:
      if (value.as<StrObject>().markup) out += "Markup(";
      append_quoted(out, value.view());
      if (value.as<StrObject>().markup) out += ')';
      return {};
    default: return append_object(rt, out, value);
  }
}

Status append_str(Runtime& rt, MarkedText& out, const Value& value) {
  if (value.is_str()) {
    out += value.view();
    return {};
  }
  if (value.is_undefined()) return {};
  return append_repr(rt, out, value);
}

Result<MarkedText> to_str(Runtime& rt, const Value& value) {
  MarkedText out;
  ZRT_CHECK_OK(append_str(rt, out, value));
  return out;
}

Result<MarkedText> to_repr(Runtime& rt, const Value& value) {
  MarkedText out;
  ZRT_CHECK_OK(append_repr(rt, out, value));
  return out;
}

MarkedText map_marked(MarkedView text, std::string (*map)(std::string_view)) {
  const auto is_ascii = [](std::string_view bytes) {
    return std::ranges::all_of(bytes, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  };
  MarkedText out;
  std::string mapped = map(text.text());
  if (!text.has_marks()) return MarkedText(std::move(mapped));
  // Only characters outside ASCII can change their size, so the marks of ASCII text stay exact.
  if (!is_ascii(text.text())) return MarkedText(std::move(mapped), true);
  std::size_t at = 0;
  text.for_each_run([&](std::string_view run, bool is_marked) {
    out.append(std::string_view(mapped).substr(at, run.size()), is_marked);
    at += run.size();
  });
  return out;
}

MarkedText map_runs(MarkedView text, std::string (*map)(std::string_view)) {
  MarkedText out;
  text.for_each_run([&](std::string_view run, bool is_marked) { out.append(map(run), is_marked); });
  return out;
}

std::unexpected<Error> beyond_ints(const Value& value) {
  return raise("{} does not fit into a signed 64-bit integer", value.as<NumberObject>().text.substr(0, 40));
}

std::unexpected<Error> undefined_error(Runtime& rt, const Value& undefined) {
  const auto& object = undefined.as<UndefinedObject>();
  if (!object.hint.empty()) return raise("{}", object.hint);
  auto name = to_repr(rt, object.name);
  if (!name) return std::unexpected(name.error());
  if (object.owner.empty()) return raise("{} is undefined", name->text());
  if (object.name.is_str()) return raise("'{}' has no attribute {}", object.owner, name->text());
  return raise("{} has no element {}", object.owner, name->text());
}

}  // namespace zinc_rt::jinja
