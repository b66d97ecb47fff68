#include "jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/utf8.h"
#include "jinja/string_literal.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

constexpr std::size_t kMaxSourceBytes = 4u << 20;

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), text_(source_) {}

  Result<std::vector<Token>> run() {
    while (pos_ < text_.size()) ZRT_CHECK_OK(root());
    push(Tok::kEof, "");
    return std::move(tokens_);
  }

 private:
  enum class Tag { kComment, kBlock, kVariable, kRaw };

  template <class... Args>
  std::unexpected<Error> error(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(StatusCode::kInvalidArgument, "[chat_template] line {}: {}", line_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  char at(std::size_t pos) const { return pos < text_.size() ? text_[pos] : '\0'; }
  bool looking_at(std::size_t pos, std::string_view what) const { return text_.substr(pos).starts_with(what); }
  std::size_t skip_space(std::size_t pos) const { return pos + leading_space(text_.substr(pos)); }

  Token& push(Tok type, std::string_view text) {
    tokens_.push_back(Token{type, line_, std::string(text)});
    return tokens_.back();
  }

  // Moves the current position to `pos` and counts the newlines on the way.
  void advance_to(std::size_t pos) {
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(pos_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(pos), '\n'));
    line_starting_ = pos > pos_ && text_[pos - 1] == '\n';
    pos_ = pos;
  }

  // Returns the position after "[-+]? raw -?%}" if that follows "{%". Returns npos if this is not a raw tag.
  std::size_t raw_tag_end(std::size_t pos) const {
    if (at(pos) == '-' || at(pos) == '+') ++pos;
    pos = skip_space(pos);
    if (!looking_at(pos, "raw")) return std::string::npos;
    pos = skip_space(pos + 3);
    if (looking_at(pos, "-%}")) return skip_space(pos + 3);
    return looking_at(pos, "%}") ? pos + 2 : std::string::npos;
  }

  // Returns the text before a tag without the white space that must be removed. The sign after the tag's opening, or
  // lstrip_blocks, decides what is removed.
  std::string_view cut(std::string_view data, char sign, bool is_variable, bool line_starting) const {
    if (sign == '-') return data.substr(0, data.size() - trailing_space(data));
    if (sign == '+' || is_variable) return data;
    std::size_t newline = data.rfind('\n');
    if (newline == std::string_view::npos && !line_starting) return data;
    std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    return leading_space(data.substr(line)) == data.size() - line ? data.substr(0, line) : data;
  }

  char sign_at(std::size_t pos) const { return at(pos) == '-' || at(pos) == '+' ? at(pos) : '\0'; }

  // Returns the position after the end of a tag. The sign before "%}" decides whether white space after it is skipped
  // too.
  std::size_t after_end(std::size_t pos, std::string_view end) const {
    if (at(pos) == '-') return skip_space(pos + 1 + end.size());
    if (at(pos) == '+') return pos + 1 + end.size();
    pos += end.size();
    return at(pos) == '\n' ? pos + 1 : pos;
  }

  Status root() {
    std::size_t open = pos_;
    for (;; ++open) {
      open = text_.find('{', open);
      if (open == std::string_view::npos || open + 1 >= text_.size()) {
        push(Tok::kData, text_.substr(pos_));
        advance_to(text_.size());
        return {};
      }
      char next = text_[open + 1];
      if (next == '%' || next == '{' || next == '#') break;
    }
    std::size_t raw_end = text_[open + 1] == '%' ? raw_tag_end(open + 2) : std::string::npos;
    Tag tag = raw_end != std::string::npos ? Tag::kRaw
              : text_[open + 1] == '%'     ? Tag::kBlock
              : text_[open + 1] == '{'     ? Tag::kVariable
                                           : Tag::kComment;
    char sign = sign_at(open + 2);
    std::string_view data = cut(text_.substr(pos_, open - pos_), sign, tag == Tag::kVariable, line_starting_);
    if (!data.empty()) push(Tok::kData, data);
    advance_to(tag == Tag::kRaw ? raw_end : open + 2 + (sign != '\0' ? 1 : 0));
    switch (tag) {
      case Tag::kComment: return comment();
      case Tag::kRaw: return raw();
      case Tag::kBlock: push(Tok::kBlockBegin, "{%"); return expression("%}", Tok::kBlockEnd);
      case Tag::kVariable: push(Tok::kVariableBegin, "{{"); return expression("}}", Tok::kVariableEnd);
    }
    return {};
  }

  Status comment() {
    std::size_t end = text_.find("#}", pos_);
    if (end == std::string_view::npos) return error("Missing end of comment tag");
    bool sign = end > pos_ && sign_at(end - 1) != '\0';
    advance_to(after_end(sign ? end - 1 : end, "#}"));
    return {};
  }

  Status raw() {
    for (std::size_t open = pos_; (open = text_.find("{%", open)) != std::string_view::npos; open += 2) {
      char sign = sign_at(open + 2);
      std::size_t pos = skip_space(open + 2 + (sign != '\0' ? 1 : 0));
      if (!looking_at(pos, "endraw")) continue;
      pos = skip_space(pos + 6);
      if (!looking_at(pos + (sign_at(pos) != '\0' ? 1 : 0), "%}")) continue;
      std::string_view data = cut(text_.substr(pos_, open - pos_), sign, false, line_starting_);
      if (!data.empty()) push(Tok::kData, data);
      advance_to(after_end(pos, "%}"));
      return {};
    }
    return error("Missing end of raw directive");
  }

  // Reads tokens up to the end of a {% or {{ tag. An end within brackets does not end the tag.
  Status expression(std::string_view end, Tok end_type) {
    std::string closing;
    bool is_variable = end_type == Tok::kVariableEnd;
    while (pos_ < text_.size()) {
      if (closing.empty()) {
        char sign = sign_at(pos_);
        bool signed_end = (sign == '-' || (sign == '+' && !is_variable)) && looking_at(pos_ + 1, end);
        if (signed_end || looking_at(pos_, end)) {
          push(end_type, end);
          std::size_t after = pos_ + end.size();
          advance_to(is_variable ? (signed_end ? skip_space(after + 1) : after) : after_end(pos_, end));
          return {};
        }
      }
      std::size_t after_space = skip_space(pos_);
      if (after_space > pos_) {
        advance_to(after_space);
        continue;
      }
      ZRT_CHECK_OK(token(closing));
    }
    return {};
  }

  Status token(std::string& closing) {
    char c = text_[pos_];
    if (is_digit(c)) return number();
    if (c == '\'' || c == '"') return string();
    Char first = char_at(text_, pos_);
    if (c == '_' || (char_flags(first.code) & (kIdent | kAlnum)) != 0) return name();
    return op(closing);
  }

  // Returns the length of the match of "(\d+_)*\d+" at pos, or 0 if no digit is at pos.
  std::size_t digit_run(std::size_t pos) const {
    std::size_t start = pos;
    while (is_digit(at(pos)) || (at(pos) == '_' && pos > start && at(pos - 1) != '_' && is_digit(at(pos + 1)))) ++pos;
    return pos - start;
  }

  Status number() {
    bool after_dot = pos_ > 0 && text_[pos_ - 1] == '.';
    std::size_t whole = digit_run(pos_);
    std::size_t end = pos_ + whole;
    bool is_float = false;
    if (!after_dot) {
      std::size_t mantissa = end;
      std::size_t fraction = at(end) == '.' ? digit_run(end + 1) : 0;
      if (fraction > 0) {
        mantissa = end + 1 + fraction;
        is_float = true;
      }
      end = mantissa;
      if ((at(mantissa) | 0x20) == 'e') {
        std::size_t sign = at(mantissa + 1) == '+' || at(mantissa + 1) == '-' ? 1 : 0;
        std::size_t exponent = digit_run(mantissa + 1 + sign);
        if (exponent > 0) {
          end = mantissa + 1 + sign + exponent;
          is_float = true;
        }
      }
    }
    return is_float ? float_token(end) : integer_token();
  }

  Status float_token(std::size_t end) {
    std::string digits(text_.substr(pos_, end - pos_));
    std::erase(digits, '_');
    double value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc::result_out_of_range) {
      value = std::strtod(digits.c_str(), nullptr);
    }
    push(Tok::kFloat, digits).real = value;
    advance_to(end);
    return {};
  }

  Status integer_token() {
    int base = 10;
    std::size_t start = pos_;
    if (at(pos_) == '0') {
      char mark = static_cast<char>(at(pos_ + 1) | 0x20);
      base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
      auto fits = [&](std::size_t pos) {
        char c = at(pos);
        int digit = is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
        return digit < base;
      };
      std::size_t end = pos_ + 2;
      while (base != 10 && (fits(end) || (at(end) == '_' && fits(end + 1)))) ++end;
      if (base != 10 && end > pos_ + 2) return integer_value(start + 2, end, base);
      // After a leading decimal zero Python allows only further zeros.
      end = pos_ + 1;
      while (at(end) == '0' || (at(end) == '_' && at(end + 1) == '0')) ++end;
      return integer_value(start, end, 10);
    }
    return integer_value(start, start + digit_run(start), 10);
  }

  Status integer_value(std::size_t start, std::size_t end, int base) {
    std::string digits(text_.substr(start, end - start));
    std::erase(digits, '_');
    std::int64_t value = 0;
    auto [rest, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (status != std::errc()) return error("integer {} does not fit into 64 bits", digits);
    push(Tok::kInteger, digits).integer = value;
    advance_to(end);
    return {};
  }

  Status name() {
    std::size_t end = pos_;
    while (end < text_.size()) {
      Char c = char_at(text_, end);
      if ((char_flags(c.code) & (kIdent | kAlnum)) == 0) break;
      end += c.size;
    }
    Char first = char_at(text_, pos_);
    if (first.code != '_' && (char_flags(first.code) & kAlpha) == 0) return error("Invalid character in identifier");
    push(Tok::kName, text_.substr(pos_, end - pos_));
    advance_to(end);
    return {};
  }

  Status string() {
    char quote = text_[pos_];
    std::size_t end = pos_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return error("unexpected char {}", describe_char());
    auto value = decode_string_literal(text_.substr(pos_ + 1, end - pos_ - 1));
    if (!value) return error("{}", value.error().message);
    push(Tok::kString, *value);
    advance_to(end + 1);
    return {};
  }

  Status op(std::string& closing) {
    static constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                      "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                      ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (std::string_view candidate : kOperators) {
      if (!looking_at(pos_, candidate)) continue;
      char c = candidate[0];
      if (c == '(' || c == '[' || c == '{') {
        closing += c == '(' ? ')' : c == '[' ? ']' : '}';
      } else if (c == ')' || c == ']' || c == '}') {
        if (closing.empty()) return error("unexpected '{}'", c);
        if (closing.back() != c) return error("unexpected '{}', expected '{}'", c, closing.back());
        closing.pop_back();
      }
      push(Tok::kOperator, candidate);
      advance_to(pos_ + candidate.size());
      return {};
    }
    return error("unexpected char {}", describe_char());
  }

  std::string describe_char() const {
    return fmt::format("'{}' at {}", text_.substr(pos_, char_at(text_, pos_).size), pos_);
  }

  std::string source_;
  std::string_view text_;
  std::size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return fail(StatusCode::kExhausted, "[chat_template] the template has {} bytes, {} allowed", source.size(),
                kMaxSourceBytes);
  }
  if (!is_utf8(source)) return fail(StatusCode::kInvalidArgument, "[chat_template] the template is not valid UTF-8");
  return Lexer(normalize_newlines(source)).run();
}

std::string describe(const Token& token) {
  switch (token.type) {
    case Tok::kData: return "template text";
    case Tok::kVariableBegin: return "begin of print statement";
    case Tok::kVariableEnd: return "end of print statement";
    case Tok::kBlockBegin: return "begin of statement block";
    case Tok::kBlockEnd: return "end of statement block";
    case Tok::kEof: return "end of template";
    case Tok::kString: return "string";
    default: return fmt::format("'{}'", token.text);
  }
}

}  // namespace zinc_rt::jinja
