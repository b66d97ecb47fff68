// Reads calls in Python's notation, [f(k="text", n=3), g()], which LFM2 writes. Values are Python's literals: texts in
// either kind of quotes, numbers, True, False, None, lists, tuples and dictionaries. Any other expression is passed on as
// a text. JSON's words and its escape \/ are read, too.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/json_text.h"
#include "base/strict_json.h"
#include "output/call_reader.h"

namespace zinc_rt::output {
namespace {

constexpr std::string_view kDigits = "0123456789", kHexDigits = "0123456789abcdefABCDEF", kOctalDigits = "01234567";

void append_utf8(std::string& out, std::uint32_t c) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    tail(12), tail(6), tail(0);
  }
}

// Returns the JSON of a word: a number, True, False or None. Returns a JSON text for anything else.
std::string json_of_word(std::string_view word) {
  if (word == "True") return "true";
  if (word == "False") return "false";
  if (word == "None") return "null";
  if (read_any_json(word)) return std::string(word);
  // Python's numbers may have a sign +, underscores between digits, and nothing before or behind the point.
  std::string number;
  for (std::size_t i = word.starts_with('+') ? 1 : 0; i < word.size(); ++i) {
    const bool is_between =
        i > 0 && i + 1 < word.size() && kDigits.contains(word[i - 1]) && kDigits.contains(word[i + 1]);
    if (word[i] == '_' && is_between) continue;
    if (word[i] == '.' && (number.empty() || number == "-")) number += '0';
    number += word[i];
    if (word[i] == '.' && (i + 1 == word.size() || !kDigits.contains(word[i + 1]))) number += '0';
  }
  const auto first = number.find_first_not_of('-');
  const bool is_number = first != std::string::npos && kDigits.contains(number[first]) && read_any_json(number);
  return is_number ? number : json_string(word);
}

class PythonReader final : public CallReader {
 public:
  PythonReader(const ReaderOptions& options, CallSink& sink) : CallReader(sink), close_(options.opening->close) {}

 private:
  // kItem: before a keyword, a value of a list or a key of a dictionary, or the bracket that closes the innermost one.
  enum class At : std::uint8_t { kStart, kItem, kValue, kText, kBehindText, kColon, kNext, kBehind };
  static constexpr std::size_t kMaxDepth = 64;
  // Characters that stand in no name of a function and in no keyword.
  static constexpr std::string_view kNotInNames = " \t\r\n()[]{}<>,=\"'\\";

  bool step() override {
    if (at_ == At::kText) return read_text();
    skip_spaces();
    if (held_.empty()) return false;
    switch (at_) {
      case At::kStart: return read_start();
      case At::kItem: return read_item();
      case At::kValue: return read_value();
      case At::kBehindText:
        // Texts side by side are one text.
        if (held_[0] == '"' || held_[0] == '\'') return open_text();
        sink_.arguments("\"");
        at_ = is_key_ ? At::kColon : At::kNext;
        return true;
      case At::kColon:
        if (!take(":")) return give_up();
        sink_.arguments(": ");
        at_ = At::kValue;
        return true;
      case At::kNext:
        if (!take(",")) return close_bracket();
        at_ = At::kItem;
        return true;
      case At::kBehind: return read_behind();
      case At::kText: break;
    }
    return false;
  }

  void flush() override {
    if (at_ == At::kText) put_text(held_);
  }

  bool give_up() {
    failed();
    return false;
  }

  bool read_start() {
    if (!is_list_ && !has_begun() && take("[")) {
      is_list_ = true;
      return true;
    }
    const auto end = held_.find_first_of(kNotInNames);
    if (end == std::string::npos || end > kMaxNameBytes) return held_.size() > kMaxNameBytes ? give_up() : false;
    const auto bracket = held_.find_first_not_of(kSpaces, end);
    if (bracket == std::string::npos || bracket > kMaxNameBytes)
      return held_.size() > kMaxNameBytes ? give_up() : false;
    if (end == 0 || held_[bracket] != '(') return give_up();
    function_ = held_.substr(0, end);
    drop(bracket + 1);
    open_ = "c";
    is_first_ = true;
    at_ = At::kItem;
    return true;
  }

  // Begins the call. What only looks like one has no keyword and no bracket that closes it at once.
  void begin_call() {
    begin(std::move(function_));
    sink_.arguments("{");
  }

  // Puts the comma before an item that is not the first.
  void put_comma() {
    if (!is_first_) sink_.arguments(", ");
    is_first_ = false;
  }

  bool read_item() {
    if (held_[0] == ')' || held_[0] == ']' || held_[0] == '}') return close_bracket();
    const char bracket = open_.back();
    if (bracket == 'c') {
      const auto end = held_.find('=');
      if (end == std::string::npos || end > kMaxNameBytes) {
        // A value without a keyword: which parameter it is for, the schema does not say.
        const bool is_none = held_.find_first_of("\"'[]{}(),") != std::string::npos;
        return is_none || held_.size() > kMaxNameBytes ? give_up() : false;
      }
      auto name = held_.substr(0, end);
      name.resize(name.find_last_not_of(kSpaces) + 1);
      if (name.empty() || name.find_first_of(kNotInNames) != std::string::npos) return give_up();
      if (is_first_) begin_call();
      put_comma();
      drop(end + 1);
      sink_.arguments(json_string(name) + ": ");
      at_ = At::kValue;
      return true;
    }
    is_key_ = bracket == '{';
    if (!is_key_) {
      put_comma();
      at_ = At::kValue;
      return true;
    }
    if (held_[0] == '"' || held_[0] == '\'') {
      if (!is_quote_whole()) return false;
      put_comma();
      sink_.arguments("\"");
      return open_text();
    }
    const auto end = word_end();
    if (end == std::string::npos || end > kMaxNameBytes) return held_.size() > kMaxNameBytes ? give_up() : false;
    if (end == 0) return give_up();
    put_comma();
    sink_.arguments(json_string(word(end)));
    drop(end);
    at_ = At::kColon;
    return true;
  }

  // Returns whether it is known which quote opens the text at held_'s beginning: one character or three.
  bool is_quote_whole() const { return held_.size() > 2 || (held_.size() == 2 && held_[1] != held_[0]); }

  bool open_text() {
    if (!is_quote_whole()) return false;
    const std::string three(3, held_[0]);
    quote_ = held_.starts_with(three) ? three : three.substr(0, 1);
    drop(quote_.size());
    at_ = At::kText;
    return true;
  }

  bool read_value() {
    const char c = held_[0];
    if (c == '"' || c == '\'') {
      if (!is_quote_whole()) return false;
      is_key_ = false;
      sink_.arguments("\"");
      return open_text();
    }
    if (c == '[' || c == '(' || c == '{') {
      if (open_.size() >= kMaxDepth) return give_up();
      open_ += c;
      sink_.arguments(c == '{' ? "{" : "[");
      drop(1);
      is_first_ = true;
      at_ = At::kItem;
      return true;
    }
    const auto end = word_end();
    if (end == std::string::npos || end > kMaxNameBytes) return held_.size() > kMaxNameBytes ? give_up() : false;
    if (end == 0) return give_up();
    sink_.arguments(json_of_word(word(end)));
    drop(end);
    at_ = At::kNext;
    return true;
  }

  std::string_view word(std::size_t end) const {
    const auto all = std::string_view(held_).substr(0, end);
    return all.substr(0, all.find_last_not_of(kSpaces) + 1);
  }

  // Returns the end of the expression at held_'s beginning: what stands before the next comma, colon or closing bracket
  // that belongs to no bracket or text within it. Returns npos if that has not come yet.
  std::size_t word_end() const {
    int depth = 0;
    char quote = 0;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const char c = held_[i];
      if (quote != 0) {
        if (c == '\\') ++i;
        if (c == quote) quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '(' || c == '[' || c == '{') {
        ++depth;
      } else if (c == ')' || c == ']' || c == '}' || c == ',' || c == ':') {
        if (depth == 0) return i;
        if (c != ',' && c != ':') --depth;
      }
    }
    return std::string::npos;
  }

  // Reads the bracket that closes the innermost one.
  bool close_bracket() {
    const char open = open_.back();
    const char wanted = open == '{' ? '}' : open == '[' ? ']' : ')';
    if (held_[0] != wanted) return give_up();
    drop(1);
    if (open == 'c' && is_first_) begin_call();
    sink_.arguments(open == '{' || open == 'c' ? "}" : "]");
    open_.pop_back();
    is_first_ = false;
    at_ = At::kNext;
    if (!open_.empty()) return true;
    end();
    at_ = At::kBehind;
    return true;
  }

  bool read_behind() {
    if (is_list_ && take("]")) {
      is_list_ = false;
      has_list_ended_ = true;
      return true;
    }
    if (!is_list_ && take(close_)) return done(), false;
    if (!is_list_ && may_become(close_)) return false;
    if (has_list_ended_) return done(), false;
    // Without a list, calls may follow each other on lines of their own.
    if (take(",") || take(";")) return true;
    if (held_.find_first_of(kNotInNames) == 0) return done(), false;
    at_ = At::kStart;
    return true;
  }

  void put_text(std::string_view text) {
    std::string escaped;
    append_escaped(escaped, text);
    if (!escaped.empty()) sink_.arguments(escaped);
  }

  bool read_text() {
    if (held_.empty()) return false;
    const auto at = held_.find_first_of(std::string{quote_[0], '\\'});
    if (at != 0) {
      const auto n = std::min(at, held_.size());
      put_text(std::string_view(held_).substr(0, n));
      drop(n);
      return at != std::string::npos;
    }
    if (held_[0] == '\\') return read_escape();
    if (take(quote_)) {
      at_ = At::kBehindText;
      return true;
    }
    if (may_become(quote_)) return false;
    put_text(std::string_view(held_).substr(0, 1));
    drop(1);
    return true;
  }

  // Returns how many of the characters behind the first `from` are digits, at most `most`; nullopt if more may come.
  std::optional<std::size_t> n_digits(std::size_t from, std::size_t most, std::string_view digits) const {
    std::size_t n = 0;
    while (n < most && from + n < held_.size() && digits.contains(held_[from + n])) ++n;
    if (n < most && from + n == held_.size()) return std::nullopt;
    return n;
  }
  std::uint32_t number_at(std::size_t from, std::size_t n, int base) const {
    return static_cast<std::uint32_t>(std::stoul(held_.substr(from, n), nullptr, base));
  }

  // Reads an escape. A backslash before a character that it does not escape is part of the text, as in Python.
  bool read_escape() {
    if (held_.size() < 2) return false;
    const char c = held_[1];
    static constexpr std::string_view kLetters = "\\'\"/ntrbfav", kMeant = "\\'\"/\n\t\r\b\f\a\v";
    if (const auto i = kLetters.find(c); i != std::string_view::npos) return put_escaped(2, kMeant.substr(i, 1));
    if (c == '\n') return put_escaped(2, "");
    if (kOctalDigits.contains(c)) {
      const auto n = n_digits(1, 3, kOctalDigits);
      return n ? put_character(1 + *n, number_at(1, *n, 8)) : false;
    }
    const std::size_t wanted = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const auto n = n_digits(2, wanted, kHexDigits);
    if (!n) return false;
    if (wanted == 0 || *n < wanted) return put_escaped(1, "\\");
    const auto code = number_at(2, wanted, 16);
    constexpr std::uint32_t kHigh = 0xD800, kLow = 0xDC00, kBehindLow = 0xE000;
    if (wanted != 4 || code < kHigh || code >= kLow) return put_character(2 + wanted, code);
    // JSON writes a character outside the basic plane as two halves.
    constexpr std::size_t kOne = 6;
    if (held_.size() == kOne || (held_.size() == kOne + 1 && held_[kOne] == '\\')) return false;
    if (!held_.substr(kOne).starts_with("\\u")) return put_character(kOne, code);
    const auto second = n_digits(kOne + 2, 4, kHexDigits);
    if (!second) return false;
    const auto low = *second == 4 ? number_at(kOne + 2, 4, 16) : 0;
    if (low < kLow || low >= kBehindLow) return put_character(kOne, code);
    return put_character(2 * kOne, 0x10000 + ((code - kHigh) << 10) + (low - kLow));
  }

  bool put_escaped(std::size_t n, std::string_view text) {
    put_text(text);
    drop(n);
    return true;
  }
  // Half a character is no text, so U+FFFD takes its place.
  bool put_character(std::size_t n, std::uint32_t code) {
    constexpr std::uint32_t kReplacement = 0xFFFD;
    std::string text;
    append_utf8(text, code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? kReplacement : code);
    return put_escaped(n, text);
  }

  const std::string_view close_;
  At at_ = At::kStart;
  bool is_list_ = false, has_list_ended_ = false;
  std::string function_;  // whose call has not begun
  std::string open_;      // brackets that are open, outermost first; c: the call's
  std::string quote_;
  bool is_first_ = true;  // whether no item of the innermost bracket has come yet
  bool is_key_ = false;   // whether the text is a key of a dictionary
};

}  // namespace

std::unique_ptr<CallReader> make_python_reader(const ReaderOptions& options, CallSink& sink) {
  return std::make_unique<PythonReader>(options, sink);
}

}  // namespace zinc_rt::output
