#include "grammar/json_lexemes.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/json_number.h"

namespace zinc_rt::grammar {
namespace {

Regex set_of(RegexArena& arena, std::string_view bytes) {
  ByteSet set;
  for (const char byte : bytes) set.add(static_cast<std::uint8_t>(byte));
  return arena.bytes(set);
}

}  // namespace

JsonLexemes::JsonLexemes(RegexArena& made_in, Regex space, Notation given)
    : arena(made_in), notation(std::move(given)), whitespace(space) {
  constexpr auto kAny = RegexArena::kUnbounded;
  const Regex digit = set_of(arena, "0123456789"), digits = arena.repeat(digit, 1, kAny);
  character = one_of(arena, CharSet::any(), notation.spelling);
  texts = names = arena.repeat(character, 0, kAny);
  if (!has_all_texts())
    texts = arena.all_of({texts, arena.complement(arena.concat(
                                     {RegexArena::kAll, arena.literal(notation.not_in_texts), RegexArena::kAll}))});
  if (!notation.not_in_names.empty()) {
    // The most characters of a member's name. The output parser searches for the end of a name only within this many
    // characters.
    constexpr std::uint32_t kMaxNameCharacters = 128;
    CharSet letters = CharSet::any().without(CharSet::of({{0, 0x1F}, {0x7F, 0x7F}}));
    for (const char c : notation.not_in_names) {
      const auto letter = static_cast<char32_t>(c);
      letters = letters.without(CharSet::of({{letter, letter}}));
    }
    names = arena.repeat(one_of(arena, letters, notation.spelling), 1, kMaxNameCharacters);
  }
  const Regex whole =
      arena.any_of({arena.literal("0"), arena.concat(set_of(arena, "123456789"), arena.repeat(digit, 0, kAny))});
  integer = arena.concat(arena.optional(arena.literal("-")), whole);
  decimal = arena.concat(integer, arena.optional(arena.concat(arena.literal("."), digits)));
  const Regex exponent = arena.concat({set_of(arena, "eE"), arena.optional(set_of(arena, "+-")), digits});
  number = arena.concat(decimal, arena.optional(exponent));
}

Regex JsonLexemes::in_quotes(Regex text) const {
  return arena.concat({arena.literal(notation.quote), text, arena.literal(notation.quote)});
}

std::string JsonLexemes::spelling_of(std::string_view utf8) const {
  return notation.spelling == Spelling::kJson ? json_spelling(utf8) : std::string(utf8);
}

Regex JsonLexemes::sign(std::string_view token, bool with_space_before) {
  const Regex made = arena.literal(token);
  return with_space_before ? with_space(made) : made;
}

std::optional<std::string> plain_digits(const Json& number) {
  std::string text = number_text(number);
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.erase(0, 1);
  long exponent = 0;
  if (const auto at = text.find_first_of("eE"); at != std::string::npos) {
    exponent = std::strtol(text.c_str() + at + 1, nullptr, 10);
    text.erase(at);
  }
  constexpr long kMost = kMaxPlainDigits;
  if (text.size() > kMaxPlainDigits || exponent > kMost || exponent < -kMost) return std::nullopt;
  const auto point = std::min(text.find('.'), text.size());
  std::string digits = text.substr(0, point) + (point < text.size() ? text.substr(point + 1) : "");
  long n_whole = static_cast<long>(point) + exponent;
  if (n_whole <= 0) {
    digits.insert(0, static_cast<std::size_t>(1 - n_whole), '0');
    n_whole = 1;
  }
  if (static_cast<long>(digits.size()) < n_whole) digits.append(static_cast<std::size_t>(n_whole) - digits.size(), '0');
  std::string whole = digits.substr(0, static_cast<std::size_t>(n_whole));
  std::string fraction = digits.substr(static_cast<std::size_t>(n_whole));
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (!fraction.empty()) whole += "." + fraction;
  return is_negative && whole != "0" ? "-" + whole : whole;
}

std::string JsonLexemes::scalar_text(const Json& value) const {
  if (!is_json_number(value) && notation.has_python_words)
    return value.is_null() ? "None" : value.get<bool>() ? "True" : "False";
  if (!is_json_number(value)) return value.dump();
  const auto text = number_text(value);
  const auto plain = plain_digits(value);
  // Numbers are written in plain digits. But a number whose plain digits exceed 24 characters is written with its
  // exponent.
  return plain && (plain->size() <= 24 || text.find_first_of("eE") == std::string::npos) ? *plain : text;
}

Regex JsonLexemes::any_text(const std::vector<std::string_view>& given) {
  std::vector<std::string> plain;
  std::vector<Regex> parts;
  for (const std::string_view one : given) {
    if (notation.spelling == Spelling::kPlain || has_one_spelling(one)) {
      plain.push_back(spelling_of(one));
    } else {
      parts.push_back(text(one));
    }
  }
  parts.push_back(arena.any_literal({plain.begin(), plain.end()}));
  return arena.any_of(std::move(parts));
}

Regex JsonLexemes::constant(const Json& value) {
  if (value.is_string()) return in_quotes(text(value.get_ref<const std::string&>()));
  if (!value.is_structured()) return arena.literal(scalar_text(value));
  const bool is_object = value.is_object();
  std::vector<Regex> parts = {arena.literal(is_object ? "{" : "[")};
  bool is_first = true;
  for (const auto& item : value.items()) {
    if (!std::exchange(is_first, false)) parts.push_back(sign(",", true));
    if (is_object) {
      parts.push_back(with_space(name(text(item.key()))));
      parts.push_back(sign(":", true));
    }
    parts.push_back(with_space(constant(item.value())));
  }
  parts.push_back(sign(is_object ? "}" : "]", true));
  Regex made = RegexArena::kEpsilon;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) made = arena.concat(*part, made);
  return made;
}

}  // namespace zinc_rt::grammar
