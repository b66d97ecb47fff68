#include "jinja/string_literal.h"

#include "base/error.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') return (c | 0x20) - 'a' + 10;
  return -1;
}

Status append_code(std::string& out, std::uint32_t code) {
  if (code > 0x10ffff) return fail(StatusCode::kInvalidArgument, "illegal Unicode character in a string");
  if (code >= 0xd800 && code < 0xe000) {
    return fail(StatusCode::kInvalidArgument, "a string holds the lone surrogate U+{:04X}, which no text can hold",
                code);
  }
  append_char(out, code);
  return {};
}

}  // namespace

Result<std::string> decode_string_literal(std::string_view body) {
  std::string out;
  out.reserve(body.size());
  for (std::size_t pos = 0; pos < body.size();) {
    char c = body[pos++];
    if (c != '\\') {
      out += c;
      continue;
    }
    if (pos >= body.size()) return fail(StatusCode::kInvalidArgument, "\\ at end of string");
    char e = body[pos];
    if (static_cast<unsigned char>(e) >= 0x80) {
      // Jinja first writes characters outside ASCII as escapes and then decodes all escapes. So a backslash before such
      // a character escapes the backslash of that escape, and the escape's text remains.
      Char wide = char_at(body, pos);
      out += '\\';
      out += wide.code < 0x100     ? fmt::format("x{:02x}", wide.code)
             : wide.code < 0x10000 ? fmt::format("u{:04x}", wide.code)
                                   : fmt::format("U{:08x}", wide.code);
      pos += wide.size;
      continue;
    }
    ++pos;
    switch (e) {
      case '\n': continue;
      case '\\':
      case '\'':
      case '"': out += e; continue;
      case 'a': out += '\a'; continue;
      case 'b': out += '\b'; continue;
      case 'f': out += '\f'; continue;
      case 'n': out += '\n'; continue;
      case 'r': out += '\r'; continue;
      case 't': out += '\t'; continue;
      case 'v': out += '\v'; continue;
      case 'N': return fail(StatusCode::kInvalidArgument, "\\N{{name}} escapes are not supported");
      default: break;
    }
    if (e >= '0' && e <= '7') {
      std::uint32_t code = static_cast<std::uint32_t>(e - '0');
      for (int i = 0; i < 2 && pos < body.size() && body[pos] >= '0' && body[pos] <= '7'; ++i) {
        code = code * 8 + static_cast<std::uint32_t>(body[pos++] - '0');
      }
      ZRT_CHECK_OK(append_code(out, code));
      continue;
    }
    int digits = e == 'x' ? 2 : e == 'u' ? 4 : e == 'U' ? 8 : 0;
    if (digits == 0) {
      out += '\\';
      out += e;
      continue;
    }
    std::uint32_t code = 0;
    for (int i = 0; i < digits; ++i) {
      int digit = pos < body.size() ? hex_digit(body[pos]) : -1;
      if (digit < 0) return fail(StatusCode::kInvalidArgument, "truncated \\{} escape in a string", e);
      code = code << 4 | static_cast<std::uint32_t>(digit);
      ++pos;
    }
    ZRT_CHECK_OK(append_code(out, code));
  }
  return out;
}

}  // namespace zinc_rt::jinja
