// Implements the methods of str that strip, split, join and replace.
#include <algorithm>

#include "jinja/call.h"
#include "jinja/loop.h"
#include "jinja/methods.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

// Returns a part of self's text as a str, with the marks that the part has in self. REQUIRES: `text` lies in self's
// text.
Value same_kind(Runtime& rt, const Value& self, std::string_view text) {
  return rt.part(self, text, self.as<StrObject>().markup);
}

std::string_view strip_left(std::string_view text, const Value& chars) {
  if (!chars.is_str()) return text.substr(leading_space(text));
  while (!text.empty()) {
    std::size_t size = char_at(text, 0).size;
    if (chars.text().find(text.substr(0, size)) == std::string::npos) break;
    text.remove_prefix(size);
  }
  return text;
}

std::string_view strip_right(std::string_view text, const Value& chars) {
  if (!chars.is_str()) return text.substr(0, text.size() - trailing_space(text));
  while (!text.empty()) {
    std::size_t size = char_before(text, text.size()).size;
    if (chars.text().find(text.substr(text.size() - size)) == std::string::npos) break;
    text.remove_suffix(size);
  }
  return text;
}

template <bool left, bool right>
Result<Value> strip(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("strip", args, {""}, 0));
  if (!a[0].is_missing() && !a[0].is_none() && !a[0].is_str()) return raise("strip arg must be None or str");
  std::uint64_t set = a[0].is_str() ? a[0].text().size() : 0;
  if (rt.over(self.text().size() / 256 * (1 + set / 16))) return rt.limit_error();
  std::string_view text = self.text();
  if (left) text = strip_left(text, a[0]);
  if (right) text = strip_right(text, a[0]);
  if (text.size() == self.text().size()) return self;
  return same_kind(rt, self, text);
}

// Collects the pieces into which a split method cuts `self`. rsplit adds them from the right, so its caller reverses
// them.
struct Pieces {
  Runtime& rt;
  const Value& self;
  std::vector<Value> items;

  Status add(std::string_view text) {
    if (rt.over()) return rt.limit_error();
    items.push_back(same_kind(rt, self, text));
    return {};
  }
};

Status split_spaces(Pieces& out, std::string_view text, std::int64_t limit) {
  text.remove_prefix(leading_space(text));
  while (!text.empty()) {
    if (limit-- == 0) return out.add(text);
    std::size_t end = 0;
    while (end < text.size()) {
      Char c = char_at(text, end);
      if (is_space(c.code)) break;
      end += c.size;
    }
    ZRT_CHECK_OK(out.add(text.substr(0, end)));
    text.remove_prefix(end);
    text.remove_prefix(leading_space(text));
  }
  return {};
}

Status rsplit_spaces(Pieces& out, std::string_view text, std::int64_t limit) {
  text.remove_suffix(trailing_space(text));
  while (!text.empty()) {
    if (limit-- == 0) return out.add(text);
    std::size_t begin = text.size();
    while (begin > 0) {
      Char c = char_before(text, begin);
      if (is_space(c.code)) break;
      begin -= c.size;
    }
    ZRT_CHECK_OK(out.add(text.substr(begin)));
    text = text.substr(0, begin);
    text.remove_suffix(trailing_space(text));
  }
  return {};
}

Status split_text(Pieces& out, std::string_view text, std::string_view separator, std::int64_t limit) {
  for (; limit != 0; --limit) {
    std::size_t at = find_text(text, separator);
    if (at == std::string::npos) break;
    ZRT_CHECK_OK(out.add(text.substr(0, at)));
    text.remove_prefix(at + separator.size());
  }
  return out.add(text);
}

Status rsplit_text(Pieces& out, std::string_view text, std::string_view separator, std::int64_t limit) {
  for (; limit != 0; --limit) {
    // Each search may copy the text, so it counts steps.
    if (out.rt.over(text.size() / 256)) return out.rt.limit_error();
    std::size_t at = rfind_text(text, separator);
    if (at == std::string::npos) break;
    ZRT_CHECK_OK(out.add(text.substr(at + separator.size())));
    text = text.substr(0, at);
  }
  return out.add(text);
}

template <bool from_right>
Result<Value> split(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("split", args, {"sep", "maxsplit"}, 0));
  std::int64_t limit = -1;
  if (!a[1].is_missing()) {
    ZRT_TRY(limit, need_int("maxsplit", a[1]));
  }
  if (limit < 0) limit = -1;
  if (rt.over(self.text().size() / 64)) return rt.limit_error();
  Pieces out{rt, self, {}};
  if (a[0].is_missing() || a[0].is_none()) {
    ZRT_CHECK_OK(from_right ? rsplit_spaces(out, self.text(), limit) : split_spaces(out, self.text(), limit));
  } else {
    ZRT_TRY(std::string_view separator, need_str("the separator", a[0]));
    if (separator.empty()) return raise("empty separator");
    ZRT_CHECK_OK(from_right ? rsplit_text(out, self.text(), separator, limit)
                            : split_text(out, self.text(), separator, limit));
  }
  if (from_right) std::reverse(out.items.begin(), out.items.end());
  return rt.list(std::move(out.items));
}

bool is_line_end(std::uint32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

Result<Value> splitlines(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("splitlines", args, {"keepends"}, 0));
  ZRT_TRY(const std::vector<std::string_view> lines, split_lines(rt, self.text(), truthy(a[0])));
  std::vector<Value> items;
  for (const std::string_view line : lines) {
    items.push_back(same_kind(rt, self, line));
    if (rt.over()) return rt.limit_error();
  }
  return rt.list(std::move(items));
}

template <bool last>
Result<Value> partition(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("partition", args, {""}, 1));
  ZRT_TRY(std::string_view separator, need_str("the separator", a[0]));
  if (separator.empty()) return raise("empty separator");
  std::string_view text = self.text();
  std::size_t at = last ? rfind_text(text, separator) : find_text(text, separator);
  if (at == std::string::npos) {
    Value empty = same_kind(rt, self, {});
    return last ? rt.tuple({empty, empty, self}) : rt.tuple({self, empty, empty});
  }
  return rt.tuple({same_kind(rt, self, text.substr(0, at)), same_kind(rt, self, text.substr(at, separator.size())),
                   same_kind(rt, self, text.substr(at + separator.size()))});
}

Result<Value> join(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("join", args, {""}, 1));
  if (!is_iterable(a[0])) return raise("can only join an iterable");
  bool markup = self.as<StrObject>().markup;
  MarkedText out;
  Cursor cursor(a[0]);
  Value item;
  for (std::size_t i = 0;; ++i) {
    ZRT_TRY(bool more, cursor.next(rt, item));
    if (!more) break;
    if (!item.is_str() && !markup)
      return raise("sequence item {}: expected str instance, {} found", i, type_name(item));
    if (markup) {
      ZRT_TRY(item, escape_value(rt, item));
    }
    if (i > 0) out += self.view();
    out += item.view();
    ZRT_CHECK_OK(rt.reserve(out.held_bytes()));
  }
  return rt.str(std::move(out), markup);
}

Result<Value> replace(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("replace", args, {"", "", ""}, 2));
  ZRT_TRY(std::string_view old_text, need_str("replace() argument 1", a[0]));
  ZRT_CHECK_OK(need_str("replace() argument 2", a[1]));
  std::int64_t limit = -1;
  if (!a[2].is_missing()) {
    ZRT_TRY(limit, need_int("replace() argument 3", a[2]));
  }
  Value by = a[1];
  if (self.as<StrObject>().markup) {
    ZRT_TRY(by, escape_value(rt, by));
  }
  ZRT_TRY(MarkedText out, replace_text(rt, self.view(), old_text, by.view(), limit));
  return rt.str(std::move(out), self.as<StrObject>().markup);
}

template <bool suffix>
Result<Value> remove_affix(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind(suffix ? "removesuffix" : "removeprefix", args, {""}, 1));
  ZRT_TRY(std::string_view part, need_str("the argument", a[0]));
  std::string_view text = self.text();
  if (part.empty()) return self;
  if (suffix && text.ends_with(part)) return same_kind(rt, self, text.substr(0, text.size() - part.size()));
  if (!suffix && text.starts_with(part)) return same_kind(rt, self, text.substr(part.size()));
  return self;
}

constexpr Builtin kSplitMethods[] = {
    {"join", join},
    {"lstrip", strip<true, false>},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", replace},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"splitlines", splitlines},
    {"strip", strip<true, true>},
};

}  // namespace

Result<std::vector<std::string_view>> split_lines(Runtime& rt, std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  for (std::size_t pos = 0; pos < text.size();) {
    std::size_t end = pos;
    std::size_t mark = 0;
    while (end < text.size()) {
      Char c = char_at(text, end);
      if (is_line_end(c.code)) {
        mark = c.code == '\r' && end + 1 < text.size() && text[end + 1] == '\n' ? 2 : c.size;
        break;
      }
      end += c.size;
    }
    if (rt.over(1 + (end - pos) / 64)) return rt.limit_error();
    ZRT_CHECK_OK(rt.reserve(sizeof(std::string_view), lines.size()));
    lines.emplace_back(text.substr(pos, end - pos + (keep_ends ? mark : 0)));
    pos = end + mark;
  }
  return lines;
}

Result<MarkedText> replace_text(Runtime& rt, MarkedView marked, std::string_view old_text, MarkedView new_text,
                                std::int64_t limit) {
  const std::string_view text = marked.text();
  if (rt.over((text.size() + old_text.size()) / 64)) return rt.limit_error();
  MarkedText out;
  std::size_t pos = 0;
  for (; limit != 0 && pos <= text.size(); --limit) {
    if (old_text.empty()) {
      // The searched text is empty, so the new text goes before the first character, between characters, and after the
      // last.
      out += new_text;
      if (pos == text.size()) return out;
      std::size_t size = char_at(text, pos).size;
      out += marked.sub(pos, size);
      pos += size;
    } else {
      std::size_t at = find_text(text, old_text, pos);
      if (at == std::string::npos) break;
      out += marked.sub(pos, at - pos);
      out += new_text;
      pos = at + old_text.size();
    }
    if (rt.over()) return rt.limit_error();
    ZRT_CHECK_OK(rt.reserve(out.held_bytes()));
  }
  if (pos < text.size()) out += marked.sub(pos);
  return out;
}

const Builtin* find_split_method(std::string_view name) {
  auto at = std::lower_bound(std::begin(kSplitMethods), std::end(kSplitMethods), name,
                             [](const Builtin& method, std::string_view wanted) { return method.name < wanted; });
  return at != std::end(kSplitMethods) && at->name == name ? at : nullptr;
}

}  // namespace zinc_rt::jinja
