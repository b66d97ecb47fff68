// Implements the filters that lay out text: pprint and striptags.
#include <algorithm>

#include "jinja/filters.h"
#include "jinja/loop.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja::filters {

namespace {

std::int64_t chars(std::string_view text) {
  return static_cast<std::int64_t>(count_chars(text));
}

// Prints values as Python's pprint does at its default width of 80.
class PrettyPrinter {
 public:
  explicit PrettyPrinter(Runtime& rt) : rt_(rt) {}

  Status print(const Value& value, std::int64_t indent, std::int64_t allowance, int level) {
    ZRT_TRY(std::string flat, repr(value));
    if (chars(flat) <= kWidth - indent - allowance) {
      out += flat;
      return {};
    }
    Runtime::Level deeper(rt_);
    if (rt_.too_deep()) return rt_.depth_error();
    switch (value.kind()) {
      case Kind::kDict: return print_dict(value, indent, allowance, level);
      case Kind::kList:
      case Kind::kTuple: return print_items(value, indent, allowance, level);
      case Kind::kStr:
        if (!value.as<StrObject>().markup) return print_text(value.text(), indent, allowance, level);
        break;
      default: break;
    }
    out += flat;
    return {};
  }

  std::string out;

 private:
  static constexpr std::int64_t kWidth = 80;

  // Returns the dict's items, sorted by key if the keys have an order.
  Result<Value> sorted_items(const Value& dict) {
    std::vector<Value> keys;
    std::vector<Value> items;
    for (const auto& [key, value] : dict.as<DictObject>().items) {
      keys.push_back(key);
      items.push_back(rt_.tuple({key, value}));
    }
    std::vector<Value> keys_before = keys;
    std::vector<Value> items_before = items;
    Status sorted = sort_by_keys(rt_, keys, items, false);
    if (sorted) return rt_.list(std::move(items));
    if (sorted.error().code != StatusCode::kInvalidArgument) return std::unexpected(sorted.error());
    return rt_.list(std::move(items_before));
  }

  Result<std::string> repr(const Value& value) {
    ZRT_CHECK_OK(rt_.reserve(out.size()));
    if (rt_.over()) return rt_.limit_error();
    Runtime::Level deeper(rt_);
    if (rt_.too_deep()) return rt_.depth_error();
    std::string text;
    if (value.is(Kind::kDict)) {
      ZRT_TRY(Value items, sorted_items(value));
      text.assign(1, '{');
      for (const Value& item : items.as<SeqObject>().items) {
        if (text.size() > 1) text += ", ";
        ZRT_TRY(std::string key, repr(item.as<SeqObject>().items[0]));
        ZRT_TRY(std::string shown, repr(item.as<SeqObject>().items[1]));
        text += key + ": " + shown;
      }
      text += '}';
      return text;
    }
    if (!value.is_sequence()) {
      ZRT_TRY(MarkedText shown, to_repr(rt_, value));
      return shown.take_text();
    }
    const auto& items = value.as<SeqObject>().items;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text += ", ";
      ZRT_TRY(std::string shown, repr(items[i]));
      text += shown;
      ZRT_CHECK_OK(rt_.reserve(text.size()));
    }
    if (value.is(Kind::kList)) return fmt::format("[{}]", text);
    return fmt::format("({}{})", text, items.size() == 1 ? "," : "");
  }

  void new_line(std::int64_t indent) {
    out += '\n';
    out.append(static_cast<std::size_t>(indent), ' ');
  }

  Status print_dict(const Value& dict, std::int64_t indent, std::int64_t allowance, int level) {
    ZRT_TRY(Value items, sorted_items(dict));
    out += '{';
    const auto& pairs = items.as<SeqObject>().items;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (i > 0) {
        out += ',';
        new_line(indent + 1);
      }
      const auto& pair = pairs[i].as<SeqObject>().items;
      ZRT_TRY(std::string key, repr(pair[0]));
      out += key + ": ";
      bool is_last = i + 1 == pairs.size();
      ZRT_CHECK_OK(print(pair[1], indent + 1 + chars(key) + 2, is_last ? allowance + 1 : 1, level + 1));
    }
    out += '}';
    return {};
  }

  Status print_items(const Value& value, std::int64_t indent, std::int64_t allowance, int level) {
    const auto& items = value.as<SeqObject>().items;
    bool is_list = value.is(Kind::kList);
    std::string end = is_list ? "]" : items.size() == 1 ? ",)" : ")";
    out += is_list ? '[' : '(';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) {
        out += ',';
        new_line(indent + 1);
      }
      bool is_last = i + 1 == items.size();
      ZRT_CHECK_OK(
          print(items[i], indent + 1, is_last ? allowance + static_cast<std::int64_t>(end.size()) : 1, level + 1));
    }
    out += end;
    return {};
  }

  // Prints a long text as several literals, each of which ends after white space.
  Status print_text(std::string_view text, std::int64_t indent, std::int64_t allowance, int level) {
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    std::int64_t width = kWidth - indent;
    ZRT_TRY(std::vector<std::string_view> lines, split_lines(rt_, text, true));
    std::vector<std::string> literals;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      bool last_line = i + 1 == lines.size();
      std::string whole = repr_of(lines[i]);
      if (chars(whole) <= width - (last_line ? allowance : 0)) {
        literals.push_back(std::move(whole));
        continue;
      }
      std::vector<std::string> parts = words_with_space(lines[i]);
      std::string current;
      for (std::size_t k = 0; k < parts.size(); ++k) {
        std::int64_t room = width - (k + 1 == parts.size() && last_line ? allowance : 0);
        std::string candidate = current + parts[k];
        if (rt_.over(1 + candidate.size() / 64)) return rt_.limit_error();
        if (chars(repr_of(candidate)) > room) {
          if (!current.empty()) literals.push_back(repr_of(current));
          current = parts[k];
        } else {
          current = std::move(candidate);
        }
      }
      if (!current.empty()) literals.push_back(repr_of(current));
    }
    bool parenthesized = level == 1 && literals.size() > 1;
    if (parenthesized) out += '(';
    for (std::size_t i = 0; i < literals.size(); ++i) {
      if (i > 0) new_line(indent);
      out += literals[i];
    }
    if (parenthesized) out += ')';
    return {};
  }

  static std::vector<std::string> words_with_space(std::string_view line) {
    std::vector<std::string> parts;
    for (std::size_t pos = 0; pos < line.size();) {
      std::size_t end = pos;
      bool in_space = false;
      while (end < line.size()) {
        Char c = char_at(line, end);
        if (is_space(c.code)) {
          in_space = true;
        } else if (in_space) {
          break;
        }
        end += c.size;
      }
      parts.emplace_back(line.substr(pos, end - pos));
      pos = end;
    }
    return parts;
  }

  Runtime& rt_;
};

// Replaces the HTML entities that a prompt's text may contain. Fails for all other entities, because without a
// replacement they would be shown wrongly.
Result<std::string> unescape(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"amp;", "&"},   {"lt;", "<"},    {"gt;", ">"},    {"quot;", "\""}, {"apos;", "'"},   {"nbsp;", "\u00a0"},
      {"raquo;", "»"}, {"laquo;", "«"}, {"mdash;", "—"}, {"ndash;", "–"}, {"hellip;", "…"}, {"copy;", "©"},
  };
  std::string out;
  for (std::size_t pos = 0; pos < text.size(); ++pos) {
    if (text[pos] != '&') {
      out += text[pos];
      continue;
    }
    std::string_view rest = text.substr(pos + 1);
    bool found = false;
    for (const auto& [name, shown] : kEntities) {
      if (!rest.starts_with(name)) continue;
      out += shown;
      pos += name.size();
      found = true;
      break;
    }
    if (found) continue;
    if (rest.starts_with('#')) {
      bool hex = rest.size() > 1 && (rest[1] | 0x20) == 'x';
      std::size_t start = hex ? 2 : 1;
      std::size_t end = start;
      while (end < rest.size() && end < start + 8 && std::isxdigit(static_cast<unsigned char>(rest[end]))) ++end;
      ZRT_TRY(auto code, parse_int(rest.substr(start, end - start), hex ? 16 : 10));
      bool valid = code && *code >= 0x20 && *code < 0x110000 && (*code < 0x7f || *code >= 0xa0) &&
                   (*code < 0xd800 || *code >= 0xe000) && end < rest.size() && rest[end] == ';';
      if (valid) {
        append_char(out, static_cast<std::uint32_t>(*code));
        pos += end + 1;
        continue;
      }
      return raise("the filter 'striptags' does not know the character reference '&{}'", rest.substr(0, 10));
    }
    if (!rest.empty() && std::isalpha(static_cast<unsigned char>(rest[0]))) {
      return raise("the filter 'striptags' does not know the entity '&{}'", rest.substr(0, rest.find_first_of("; ")));
    }
    out += '&';
  }
  return out;
}

}  // namespace

Result<Value> pprint(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("pprint", args));
  PrettyPrinter printer(rt);
  ZRT_CHECK_OK(printer.print(self, 0, 0, 1));
  // The printer does not track where each piece of the text goes. If any piece came from outside the template, the
  // whole text is marked as coming from outside.
  ZRT_TRY(const MarkedText shown, to_repr(rt, self));
  return rt.str(MarkedText(std::move(printer.out), shown.has_marks()));
}

Result<Value> striptags(Runtime& rt, const Value& self, Args& args) {
  ZRT_CHECK_OK(no_arguments("striptags", args));
  ZRT_TRY(MarkedText given, to_str(rt, self));
  const bool is_foreign = given.has_marks();
  const std::string text = given.take_text();
  if (rt.over(text.size() / 32)) return rt.limit_error();
  std::string kept;
  std::size_t pos = 0;
  for (std::size_t start; (start = text.find('<', pos)) != std::string::npos;) {
    bool comment = text.compare(start, 4, "<!--") == 0;
    std::size_t end = comment ? text.find("-->", start + 4) : text.find('>', start);
    if (end == std::string::npos) break;
    kept.append(text, pos, start - pos);
    pos = end + (comment ? 3 : 1);
  }
  kept.append(text, pos);
  std::string collapsed;
  for (std::size_t at = 0; at < kept.size();) {
    at += leading_space(std::string_view(kept).substr(at));
    std::size_t end = at;
    while (end < kept.size()) {
      Char c = char_at(kept, end);
      if (is_space(c.code)) break;
      end += c.size;
    }
    if (end > at && !collapsed.empty()) collapsed += ' ';
    collapsed.append(kept, at, end - at);
    at = end;
  }
  ZRT_TRY(std::string out, unescape(collapsed));
  return rt.str(MarkedText(std::move(out), is_foreign));
}

}  // namespace zinc_rt::jinja::filters
