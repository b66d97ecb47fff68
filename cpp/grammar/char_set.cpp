#include "grammar/char_set.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/utf8.h"

namespace zinc_rt::grammar {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr char32_t kBeforeSurrogates = 0xD7FF, kBehindSurrogates = 0xE000;

// Collects the UTF-8 encodings of ranges of code points, as sequences of byte ranges. The sequences are grouped by
// their bytes after the first, so that sequences with equal ends share one regex.
class Utf8Ranges {
 public:
  explicit Utf8Ranges(RegexArena& arena) : arena_(arena) {}

  void add(char32_t first, char32_t last) {
    for (const char32_t end : {char32_t{0x7F}, char32_t{0x7FF}, char32_t{0xFFFF}}) {
      if (first <= end && end < last) {
        add(first, end);
        add(end + 1, last);
        return;
      }
    }
    // The range is split until each continuation byte has either one value or all values.
    const int n = last < 0x80 ? 1 : last < 0x800 ? 2 : last < 0x10000 ? 3 : 4;
    for (int i = 1; i < n; ++i) {
      const char32_t low = (char32_t{1} << (6 * i)) - 1;
      if ((first & ~low) == (last & ~low)) continue;
      if ((first & low) != 0) {
        add(first, first | low);
        add((first | low) + 1, last);
        return;
      }
      if ((last & low) != low) {
        add(first, (last & ~low) - 1);
        add(last & ~low, last);
        return;
      }
    }
    std::string from, to;
    append_utf8(from, first);
    append_utf8(to, last);
    Regex tail = RegexArena::kEpsilon;
    for (std::size_t i = from.size(); i-- > 1;) tail = arena_.concat(arena_.bytes(set_of(from[i], to[i])), tail);
    ByteSet& heads = heads_[tail];
    heads = heads | set_of(from[0], to[0]);
  }

  Regex make() {
    std::vector<Regex> parts;
    for (const auto& [tail, heads] : heads_) parts.push_back(arena_.concat(arena_.bytes(heads), tail));
    return arena_.any_of(std::move(parts));
  }

 private:
  static ByteSet set_of(char from, char to) {
    return ByteSet::range(static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to));
  }
  RegexArena& arena_;
  std::map<Regex, ByteSet> heads_;
};

constexpr std::pair<char32_t, char> kShortEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                                       {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};

char short_escape(char32_t c) {
  for (const auto& [from, to] : kShortEscapes)
    if (from == c) return to;
  return '\0';
}

bool is_escaped(char32_t c) {
  return c < 0x20 || c == 0x7F || c == '"' || c == '\\';
}

// Returns a regex for the escapes of a character in a JSON string: its short escape, such as \n, and \u00XX.
Regex escape_of(RegexArena& arena, char32_t c) {
  constexpr char kHex[] = "0123456789abcdef", kUpper[] = "0123456789ABCDEF";
  const char letter = short_escape(c);
  const Regex short_form = letter != '\0' ? arena.literal({&letter, 1}) : RegexArena::kNothing;
  if (c == '"' || c == '\\') return short_form;
  ByteSet digit;
  digit.add(static_cast<std::uint8_t>(kHex[c & 15]));
  digit.add(static_cast<std::uint8_t>(kUpper[c & 15]));
  return arena.any_of(
      {short_form, arena.concat({arena.literal("u00"), arena.literal({&kHex[c >> 4], 1}), arena.bytes(digit)})});
}

}  // namespace

CharSet CharSet::any() {
  return of({{0, kLast}});
}

CharSet CharSet::of(std::initializer_list<std::pair<char32_t, char32_t>> ranges) {
  CharSet set;
  set.ranges_ = ranges;
  set.normalize();
  return set;
}

void CharSet::add(char32_t first, char32_t last) {
  ranges_.emplace_back(first, last);
  normalize();
}

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  normalize();
}

void CharSet::normalize() {
  std::ranges::sort(ranges_);
  std::vector<std::pair<char32_t, char32_t>> made;
  const auto put = [&](char32_t first, char32_t last) {
    if (first > last) return;
    if (!made.empty() && first <= made.back().second + 1) {
      made.back().second = std::max(made.back().second, last);
    } else {
      made.emplace_back(first, last);
    }
  };
  for (const auto& [first, last] : ranges_) {
    put(first, std::min(last, kBeforeSurrogates));
    put(std::max(first, kBehindSurrogates), std::min(last, kLast));
  }
  ranges_ = std::move(made);
}

CharSet CharSet::complement() const {
  CharSet set;
  char32_t next = 0;
  for (const auto& [first, last] : ranges_) {
    if (first > next) set.ranges_.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLast) set.ranges_.emplace_back(next, kLast);
  set.normalize();
  return set;
}

CharSet CharSet::common(const CharSet& other) const {
  CharSet set = complement();
  set.add(other.complement());
  return set.complement();
}

CharSet CharSet::without(const CharSet& other) const {
  return common(other.complement());
}

Regex one_of(RegexArena& arena, const CharSet& set, Spelling spelling) {
  Utf8Ranges plain(arena);
  if (spelling == Spelling::kPlain) {
    for (const auto& [first, last] : set.ranges()) plain.add(first, last);
    return plain.make();
  }
  const CharSet escaped = CharSet::of({{0, 0x1F}, {0x7F, 0x7F}, {'"', '"'}, {'\\', '\\'}});
  std::vector<Regex> escapes;
  const CharSet rare = set.common(escaped);
  for (const auto& [first, last] : rare.ranges())
    for (char32_t c = first; c <= last; ++c) escapes.push_back(escape_of(arena, c));
  const CharSet common = set.without(escaped);
  for (const auto& [first, last] : common.ranges()) plain.add(first, last);
  return arena.any_of({plain.make(), arena.concat(arena.literal("\\"), arena.any_of(std::move(escapes)))});
}

bool has_one_spelling(std::string_view utf8) {
  return std::ranges::none_of(utf8, [](char c) { return static_cast<std::uint8_t>(c) < 0x20 || c == 0x7F; });
}

Regex spelled(RegexArena& arena, std::string_view utf8, Spelling spelling) {
  if (spelling == Spelling::kPlain) return arena.literal(utf8);
  Regex made = RegexArena::kEpsilon;
  for (std::size_t i = utf8.size(); i-- > 0;) {
    const auto byte = static_cast<std::uint8_t>(utf8[i]);
    const Regex one =
        is_escaped(byte) ? arena.concat(arena.literal("\\"), escape_of(arena, byte)) : arena.literal(utf8.substr(i, 1));
    made = arena.concat(one, made);
  }
  return made;
}

std::string json_spelling(std::string_view utf8) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string made;
  for (const char c : utf8) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (!is_escaped(byte)) {
      made += c;
    } else if (const char letter = short_escape(byte)) {
      made += '\\';
      made += letter;
    } else {
      made += "\\u00";
      made += kHex[byte >> 4];
      made += kHex[byte & 15];
    }
  }
  return made;
}

}  // namespace zinc_rt::grammar
