// Implements "%d" % x and "{}".format(x): parses the patterns and takes the arguments. format_spec.cpp formats each
// value.
#include "jinja/format_spec.h"
#include "jinja/loop.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

// Holds the arguments of one % operation and returns them one by one, in order or by name.
class PercentArguments {
 public:
  explicit PercentArguments(const Value& arguments) : arguments_(arguments) {}

  Result<Value> next() {
    if (arguments_.is(Kind::kTuple)) {
      const auto& items = arguments_.as<SeqObject>().items;
      if (used_ < items.size()) return items[used_++];
    } else if (used_ == 0) {
      ++used_;
      return arguments_;
    }
    return raise("not enough arguments for format string");
  }
  Result<Value> named(Runtime& rt, std::string_view name) {
    if (!arguments_.is(Kind::kDict)) return raise("format requires a mapping");
    by_name_ = true;
    const Value* found = dict_get(arguments_.as<DictObject>(), name);
    if (found == nullptr) return raise("KeyError: {}", repr_of(name));
    if (rt.over()) return rt.limit_error();
    return *found;
  }
  bool all_used() const {
    if (arguments_.is(Kind::kTuple)) return used_ == arguments_.as<SeqObject>().items.size();
    // A value with items could have been used by name, so Python does not complain that it was not used.
    bool indexed = arguments_.is(Kind::kDict) || arguments_.is(Kind::kList) || arguments_.is(Kind::kRange);
    return used_ == 1 || by_name_ || indexed || arguments_.is_undefined();
  }

 private:
  const Value& arguments_;
  std::size_t used_ = 0;
  bool by_name_ = false;
};

Result<std::int64_t> read_number(std::string_view format, std::size_t& pos, PercentArguments& arguments) {
  if (pos < format.size() && format[pos] == '*') {
    ++pos;
    ZRT_TRY(Value value, arguments.next());
    if (!value.is_integral()) return raise("* wants int");
    if (value.as_int() > kMaxFormatWidth || value.as_int() < -kMaxFormatWidth) {
      return raise("width or precision too big in format string");
    }
    return value.as_int();
  }
  std::int64_t n = 0;
  for (; pos < format.size() && format[pos] >= '0' && format[pos] <= '9'; ++pos) {
    n = n * 10 + (format[pos] - '0');
    if (n > kMaxFormatWidth) return raise("width or precision too big in format string");
  }
  return n;
}

Result<std::int64_t> integer_operand(Runtime& rt, char type, const Value& operand) {
  const Value value = counted(operand);
  if (value.is_undefined()) return undefined_error(rt, value);
  if (is_beyond_ints(value)) return beyond_ints(value);
  if (value.is_integral()) return value.as_int();
  if (value.is(Kind::kFloat) && (type == 'd' || type == 'i' || type == 'u')) return float_to_int(value.as_real());
  return raise("%{} format: a real number is required, not {}", type, type_name(value));
}

Result<MarkedText> percent_one(Runtime& rt, FormatSpec spec, char type, const Value& value, bool escape) {
  switch (type) {
    case 's':
    case 'r':
    case 'a': {
      ZRT_TRY(MarkedText text, type == 's' ? to_str(rt, value) : to_repr(rt, value));
      if (type == 'a') text = map_runs(text.view(), ascii_only);
      if (escape && !(type == 's' && value.is_str() && value.as<StrObject>().markup))
        text = map_runs(text.view(), escape_html);
      spec.zero = false;
      if (spec.align == 0) spec.align = '>';
      return format_text(rt, spec, text.view());
    }
    case 'c': {
      if (value.is_str() && n_chars(value.as<StrObject>()) == 1) return format_text(rt, spec, value.view());
      if (!value.is_integral() || value.as_int() < 0 || value.as_int() > 0x10ffff) {
        return raise("%c requires int or char");
      }
      std::string text;
      append_char(text, static_cast<std::uint32_t>(value.as_int()));
      // The text is marked as coming from outside, because a number from outside chooses the character.
      return format_text(rt, spec, MarkedView(text, true));
    }
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
      ZRT_TRY(std::int64_t n, integer_operand(rt, type, value));
      spec.type = type == 'i' || type == 'u' ? 'd' : type;
      return as_own(format_integer(rt, spec, n));
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G': {
      if (value.is_undefined()) return undefined_error(rt, value);
      if (!value.is_number()) return raise("must be real number, not {}", type_name(value));
      spec.type = type;
      if (spec.precision < 0) spec.precision = 6;
      return as_own(format_float(rt, spec, value.as_real()));
    }
    default: return raise("unsupported format character '{}'", type);
  }
}

Result<MarkedText> percent_field(Runtime& rt, std::string_view format, std::size_t& pos, PercentArguments& arguments,
                                 bool escape) {
  FormatSpec spec;
  Value named;
  if (pos < format.size() && format[pos] == '(') {
    int depth = 1;
    std::size_t start = ++pos;
    for (; pos < format.size() && depth > 0; ++pos) depth += format[pos] == '(' ? 1 : format[pos] == ')' ? -1 : 0;
    if (depth > 0) return raise("incomplete format key");
    ZRT_TRY(named, arguments.named(rt, format.substr(start, pos - 1 - start)));
  }
  for (; pos < format.size(); ++pos) {
    char c = format[pos];
    if (c == '-') {
      spec.align = '<';
    } else if (c == '+' || (c == ' ' && spec.sign != '+')) {
      spec.sign = c;
    } else if (c == '#') {
      spec.alternate = true;
    } else if (c == '0') {
      spec.zero = true;
    } else if (c != ' ') {
      break;
    }
  }
  ZRT_TRY(spec.width, read_number(format, pos, arguments));
  if (spec.width < 0) {
    spec.align = '<';
    spec.width = -spec.width;
  }
  if (spec.align == '<') spec.zero = false;
  if (pos < format.size() && format[pos] == '.') {
    ++pos;
    ZRT_TRY(spec.precision, read_number(format, pos, arguments));
    if (spec.precision < 0) spec.precision = 0;
  }
  while (pos < format.size() && (format[pos] == 'h' || format[pos] == 'l' || format[pos] == 'L')) ++pos;
  if (pos >= format.size()) return raise("incomplete format");
  char type = format[pos++];
  if (type == '%') return MarkedText("%");
  if (named.is_missing()) {
    ZRT_TRY(named, arguments.next());
  }
  return percent_one(rt, spec, type, named, escape);
}

// Formatter formats the fields of one call of str.format. It holds the arguments and the number of the next argument.
class Formatter {
 public:
  Formatter(Runtime& rt, const Args& arguments) : rt_(rt), arguments_(arguments) {}

  Result<MarkedText> run(MarkedView marked, int nesting) {
    if (nesting < 0) return raise("Max string recursion exceeded");
    const std::string_view format = marked.text();
    MarkedText out;
    for (std::size_t pos = 0; pos < format.size();) {
      if (rt_.over()) return rt_.limit_error();
      char c = format[pos++];
      if (c != '{' && c != '}') {
        out += marked.sub(pos - 1, 1);
        continue;
      }
      if (pos < format.size() && format[pos] == c) {
        out += marked.sub(pos, 1);
        ++pos;
        continue;
      }
      if (c == '}') return raise("Single '}}' encountered in format string");
      std::size_t start = pos;
      int depth = 1;
      for (; pos < format.size() && depth > 0; ++pos) depth += format[pos] == '{' ? 1 : format[pos] == '}' ? -1 : 0;
      if (depth > 0) return raise("expected '}}' before end of string");
      ZRT_TRY(MarkedText text, field(marked.sub(start, pos - 1 - start), nesting));
      // If any part of a field came from outside, the whole field is marked, because text from outside determines its
      // layout.
      if (marked.sub(start - 1, pos - start + 1).has_marks()) text.mark_all();
      out += text.view();
      ZRT_CHECK_OK(rt_.reserve(out.held_bytes()));
    }
    return out;
  }

 private:
  Result<MarkedText> field(MarkedView marked, int nesting) {
    const std::string_view field = marked.text();
    std::size_t name_end = 0;
    bool in_brackets = false;
    for (; name_end < field.size(); ++name_end) {
      char c = field[name_end];
      if (c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (!in_brackets && (c == '!' || c == ':')) break;
    }
    ZRT_TRY(Value value, lookup(field.substr(0, name_end)));
    std::string_view rest = field.substr(name_end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':'))
        return raise("expected ':' after conversion specifier");
      if (rest[1] != 's' && rest[1] != 'r' && rest[1] != 'a')
        return raise("Unknown conversion specifier '{}'", rest[1]);
      ZRT_TRY(MarkedText text, rest[1] == 's' ? to_str(rt_, value) : to_repr(rt_, value));
      value = rt_.str(rest[1] == 'a' ? map_runs(text.view(), ascii_only) : std::move(text));
      rest.remove_prefix(2);
    }
    if (rest.starts_with(':')) rest.remove_prefix(1);
    ZRT_TRY(const MarkedText spec, run(marked.sub(rest), nesting - 1));
    ZRT_TRY(MarkedText out, format_value(rt_, value, spec.text()));
    if (spec.has_marks()) out.mark_all();
    return out;
  }

  Result<Value> lookup(std::string_view name) {
    std::size_t end = std::min(name.find_first_of(".["), name.size());
    std::string_view first = name.substr(0, end);
    bool number = !first.empty() && first.find_first_not_of("0123456789") == std::string_view::npos;
    Value value;
    if (first.empty() || number) {
      if (first.empty() ? numbering_ == Numbering::kManual : numbering_ == Numbering::kAutomatic) {
        return raise("cannot switch between automatic and manual field numbering");
      }
      numbering_ = first.empty() ? Numbering::kAutomatic : Numbering::kManual;
      ZRT_TRY(auto given, parse_int(first.empty() ? std::string_view("0") : first, 10));
      auto index = static_cast<std::size_t>(first.empty() ? automatic_++ : given.value_or(0));
      if (index >= arguments_.positional.size()) {
        return raise("Replacement index {} out of range for positional args tuple", index);
      }
      value = arguments_.positional[index];
    } else {
      for (const auto& [key, named] : arguments_.named) {
        if (key == first) value = named;
      }
      if (value.is_missing()) return raise("KeyError: {}", repr_of(first));
    }
    return follow(std::move(value), name.substr(end));
  }

  Result<Value> follow(Value value, std::string_view path) {
    while (!path.empty()) {
      if (path[0] == '.') {
        std::size_t end = std::min(path.find_first_of(".[", 1), path.size());
        if (end == 1) return raise("Empty attribute in format string");
        ZRT_TRY(value, get_attribute(rt_, value, rt_.str(std::string(path.substr(1, end - 1)))));
        path.remove_prefix(end);
        continue;
      }
      std::size_t end = path[0] == '[' ? path.find(']') : std::string_view::npos;
      if (end == std::string_view::npos) return raise("Only '.' or '[' may follow ']' in format field specifier");
      std::string_view key = path.substr(1, end - 1);
      if (key.empty()) return raise("Empty attribute in format string");
      bool number = key.find_first_not_of("0123456789") == std::string_view::npos;
      ZRT_TRY(auto index, parse_int(number ? key : std::string_view("0"), 10));
      ZRT_TRY(value, get_item(rt_, value, number ? Value::integer(index.value_or(0)) : rt_.str(std::string(key))));
      path.remove_prefix(end + 1);
    }
    return value;
  }

  enum class Numbering { kOpen, kAutomatic, kManual };
  Runtime& rt_;
  const Args& arguments_;
  Numbering numbering_ = Numbering::kOpen;
  std::int64_t automatic_ = 0;
};

}  // namespace

Result<Value> percent_format(Runtime& rt, const Value& format, const Value& arguments) {
  bool markup = format.as<StrObject>().markup;
  PercentArguments values(arguments);
  std::string_view text = format.text();
  MarkedText out;
  for (std::size_t pos = 0; pos < text.size();) {
    if (text[pos] != '%') {
      out += format.view().sub(pos++, 1);
      continue;
    }
    if (rt.over()) return rt.limit_error();
    const std::size_t begin = pos++;
    ZRT_TRY(MarkedText piece, percent_field(rt, text, pos, values, markup));
    if (format.view().sub(begin, pos - begin).has_marks()) piece.mark_all();
    out += piece.view();
    ZRT_CHECK_OK(rt.reserve(out.held_bytes()));
  }
  if (!values.all_used()) return raise("not all arguments converted during string formatting");
  return rt.str(std::move(out), markup);
}

Result<MarkedText> str_format(Runtime& rt, MarkedView format, const Args& arguments) {
  return Formatter(rt, arguments).run(format, 2);
}

}  // namespace zinc_rt::jinja
