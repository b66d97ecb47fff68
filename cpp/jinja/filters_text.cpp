// Implements the filters whose operand and result are texts.
#include <algorithm>
#include <cmath>

#include "jinja/filters.h"
#include "jinja/format_spec.h"
#include "jinja/methods.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja::filters {

namespace {

Result<Value> by_method(Runtime& rt, const Value& self, std::string_view method, Args& args) {
  ZRT_TRY(Value text, soft_str(rt, self));
  return find_str_method(method)->call(rt, text, args);
}

bool is_word(Char c) {
  return c.code == '_' || (char_flags(c.code) & kAlnum) != 0;
}

void append_quoted_url(std::string& out, std::string_view text, bool for_query) {
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = std::isalnum(byte) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !for_query);
    if (byte < 0x80 && plain) {
      out += c;
    } else if (c == ' ' && for_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
}

}  // namespace

Result<Value> capitalize(Runtime& rt, const Value& self, Args& args) {
  return by_method(rt, self, "capitalize", args);
}

Result<Value> upper(Runtime& rt, const Value& self, Args& args) {
  return by_method(rt, self, "upper", args);
}

Result<Value> lower(Runtime& rt, const Value& self, Args& args) {
  return by_method(rt, self, "lower", args);
}

Result<Value> center(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("center", args, {"width"}, 0));
  Args width;
  width.positional.push_back(a[0].is_missing() ? Value::integer(80) : a[0]);
  return by_method(rt, self, "center", width);
}

Result<Value> trim(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("trim", args, {"chars"}, 0));
  Args chars;
  if (!a[0].is_missing()) chars.positional.push_back(a[0]);
  return by_method(rt, self, "strip", chars);
}

Result<Value> string(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("string", args));
  return soft_str(rt, self);
}

Result<Value> safe(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("safe", args));
  ZRT_TRY(MarkedText text, to_str(rt, self));
  return rt.str(std::move(text), true);
}

Result<Value> escape(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("escape", args));
  return escape_value(rt, self);
}

Result<Value> force_escape(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("forceescape", args));
  ZRT_TRY(const MarkedText text, to_str(rt, self));
  return rt.str(map_runs(text.view(), escape_html), true);
}

Result<Value> format(Runtime& rt, const Value& self, Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    return raise("can't handle positional and keyword arguments at the same time");
  }
  ZRT_TRY(Value text, soft_str(rt, self));
  if (args.named.empty()) return percent_format(rt, text, rt.tuple(args.positional));
  Value named = rt.dict();
  for (std::size_t i = 0; i < args.named.size(); ++i) ZRT_CHECK_OK(dict_set_named(rt, named.as<DictObject>(), args, i));
  return percent_format(rt, text, named);
}

Result<Value> replace(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("replace", args, {"old", "new", "count"}, 2));
  std::int64_t limit = -1;
  if (!a[2].is_missing() && !a[2].is_none()) {
    ZRT_TRY(limit, need_int("count", a[2]));
  }
  ZRT_TRY(const MarkedText text, to_str(rt, self));
  ZRT_TRY(const MarkedText old_text, to_str(rt, a[0]));
  ZRT_TRY(const MarkedText new_text, to_str(rt, a[1]));
  ZRT_TRY(MarkedText out, replace_text(rt, text.view(), old_text.text(), new_text.view(), limit));
  return rt.str(std::move(out));
}

// Implements the filter title. It converts the first character of every part to upper case and the rest to lower case.
// Parts are separated by runs of -, white space and opening brackets, which are kept.
Result<Value> title(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("title", args));
  ZRT_TRY(Value value, soft_str(rt, self));
  std::string_view text = value.text();
  auto divides = [](Char c) {
    return is_space(c.code) || c.code == '-' || c.code == '(' || c.code == '{' || c.code == '[' || c.code == '<';
  };
  MarkedText out;
  for (std::size_t pos = 0; pos < text.size();) {
    std::size_t end = pos;
    Char first = char_at(text, pos);
    bool divider = divides(first);
    while (end < text.size()) {
      Char c = char_at(text, end);
      if (divides(c) != divider) break;
      end += c.size;
    }
    out += map_marked(value.view().sub(pos, first.size), to_upper).view();
    out += map_marked(value.view().sub(pos + first.size, end - pos - first.size), to_lower).view();
    pos = end;
    if (rt.over()) return rt.limit_error();
  }
  return rt.str(std::move(out));
}

Result<Value> indent(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("indent", args, {"width", "first", "blank"}, 0));
  if (self.is_undefined()) return undefined_error(rt, self);
  ZRT_TRY(std::string_view text, need_str("the operand of indent", self));
  MarkedText by(std::string(4, ' '));
  if (a[0].is_str()) {
    by = MarkedText(a[0].view());
  } else if (!a[0].is_missing()) {
    ZRT_TRY(std::int64_t width, need_int("width", a[0]));
    ZRT_CHECK_OK(rt.reserve(static_cast<std::uint64_t>(std::max<std::int64_t>(width, 0))));
    by = MarkedText(std::string(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' '));
  }
  const std::string ended = std::string(text) + "\n";
  ZRT_TRY(std::vector<std::string_view> lines, split_lines(rt, ended, false));
  ZRT_CHECK_OK(rt.reserve(by.size(), lines.size()));
  bool blank = truthy(a[2]);
  MarkedText out;
  if (truthy(a[1])) out += by.view();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out += '\n';
      if (blank || !lines[i].empty()) out += by.view();
    }
    out += self.view().sub(static_cast<std::size_t>(lines[i].data() - ended.data()), lines[i].size());
  }
  return rt.str(std::move(out), self.as<StrObject>().markup);
}

Result<Value> truncate(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("truncate", args, {"length", "killwords", "end", "leeway"}, 0));
  std::int64_t limit = 255;
  std::int64_t leeway = 5;
  MarkedText end("...");
  if (!a[0].is_missing()) {
    ZRT_TRY(limit, need_int("length", a[0]));
  }
  if (!a[2].is_missing()) {
    ZRT_CHECK_OK(need_str("end", a[2]));
    end = MarkedText(a[2].view());
  }
  if (!a[3].is_missing() && !a[3].is_none()) {
    ZRT_TRY(leeway, need_int("leeway", a[3]));
  }
  auto end_chars = static_cast<std::int64_t>(count_chars(end.text()));
  if (limit < end_chars) return raise("expected length >= {}, got {}", end_chars, limit);
  if (leeway < 0) return raise("expected leeway >= 0, got {}", leeway);
  ZRT_TRY(std::int64_t size, length(rt, self));
  std::int64_t longest = 0;
  if (__builtin_add_overflow(limit, leeway, &longest) || size <= longest) return self;
  ZRT_TRY(std::string_view text, need_str("the operand of truncate", self));
  std::string_view kept = text.substr(0, char_offset(text, static_cast<std::size_t>(limit - end_chars), false));
  if (!truthy(a[1])) kept = kept.substr(0, kept.rfind(' '));
  MarkedText out(self.view().sub(kept));
  out += end.view();
  return rt.str(std::move(out), self.as<StrObject>().markup);
}

Result<Value> wordcount(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("wordcount", args));
  ZRT_TRY(Value value, soft_str(rt, self));
  std::string_view text = value.text();
  if (rt.over(text.size() / 64)) return rt.limit_error();
  std::int64_t n = 0;
  bool inside = false;
  for (std::size_t pos = 0; pos < text.size();) {
    Char c = char_at(text, pos);
    bool word = is_word(c);
    if (word && !inside) ++n;
    inside = word;
    pos += c.size;
  }
  return Value::integer(n);
}

Result<Value> urlencode(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("urlencode", args));
  std::string out;
  bool is_foreign = false;
  const auto append = [&](const Value& value, bool for_query) -> Status {
    ZRT_TRY(const MarkedText text, to_str(rt, value));
    append_quoted_url(out, text.text(), for_query);
    is_foreign = is_foreign || text.has_marks();
    return {};
  };
  if (self.is_str() || !is_iterable(self)) {
    ZRT_CHECK_OK(append(self, false));
    return rt.str(MarkedText(std::move(out), is_foreign));
  }
  std::vector<std::pair<Value, Value>> pairs;
  if (self.is(Kind::kDict)) {
    pairs = self.as<DictObject>().items;
  } else {
    ZRT_TRY(std::vector<Value> items, to_vector(rt, self));
    for (const Value& item : items) {
      ZRT_TRY(std::vector<Value> pair, unpack(rt, item, 2));
      pairs.emplace_back(pair[0], pair[1]);
    }
  }
  for (const auto& [key, value] : pairs) {
    if (!out.empty()) out += '&';
    ZRT_CHECK_OK(append(key, true));
    out += '=';
    ZRT_CHECK_OK(append(value, true));
    ZRT_CHECK_OK(rt.reserve(out.size()));
  }
  return rt.str(MarkedText(std::move(out), is_foreign));
}

Result<Value> xmlattr(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("xmlattr", args, {"autospace"}, 0));
  if (self.is_undefined()) return undefined_error(rt, self);
  if (!self.is(Kind::kDict)) return raise("'{} object' has no attribute 'items'", type_name(self));
  MarkedText out;
  if (a[0].is_missing() || truthy(a[0])) out += ' ';
  const std::size_t n_before = out.size();
  for (const auto& [key, value] : self.as<DictObject>().items) {
    if (value.is_none() || value.is_undefined()) continue;
    ZRT_TRY(std::string_view name, need_str("an attribute name", key));
    if (name.find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      return raise("Invalid character in attribute name: {}", repr_of(name));
    }
    ZRT_TRY(Value shown_name, escape_value(rt, key));
    ZRT_TRY(Value shown, escape_value(rt, value));
    if (out.size() > n_before) out += ' ';
    out += shown_name.view();
    out += "=\"";
    out += shown.view();
    out += '"';
    ZRT_CHECK_OK(rt.reserve(out.size()));
  }
  if (out.size() == n_before) out = MarkedText();
  return rt.str(std::move(out));
}

Result<Value> filesizeformat(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("filesizeformat", args, {"binary"}, 0));
  if (self.is_undefined()) return undefined_error(rt, self);
  std::optional<double> size;
  if (self.is_number()) size = self.as_real();
  if (self.is_str()) size = parse_float(self.text());
  if (!size) return raise("could not convert {} to float", type_name(self));
  bool is_binary = truthy(a[0]);
  double base = is_binary ? 1024 : 1000;
  if (*size == 1) return rt.str("1 Byte");
  if (*size < base) {
    ZRT_TRY(std::int64_t whole, float_to_int(*size));
    return rt.str(fmt::format("{} Bytes", whole));
  }
  double unit = base;
  for (const char* prefix : {"k", "M", "G", "T", "P", "E", "Z", "Y"}) {
    unit *= base;
    if (*size >= unit && *prefix != 'Y') continue;
    FormatSpec spec;
    spec.type = 'f';
    spec.precision = 1;
    ZRT_TRY(std::string number, format_float(rt, spec, base * *size / unit));
    std::string name = is_binary ? std::string(*prefix == 'k' ? "K" : prefix) + "iB" : std::string(prefix) + "B";
    return rt.str(number + " " + name);
  }
  return rt.str("");
}

}  // namespace zinc_rt::jinja::filters
