// Turns template text into tokens. It applies Jinja's white space rules with trim_blocks and lstrip_blocks on, and
// removes one newline at the template's end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::jinja {

enum class Tok : std::uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEof,
};

struct Token {
  Tok type = Tok::kEof;
  int line = 1;
  std::string text;  // for a string the decoded value, for an operator its characters
  std::int64_t integer = 0;
  double real = 0;

  bool is_operator(std::string_view op) const { return type == Tok::kOperator && text == op; }
  bool is_name(std::string_view name) const { return type == Tok::kName && text == name; }
};

Result<std::vector<Token>> tokenize(std::string_view source);
// Returns how an error message shows a token.
std::string describe(const Token& token);

}  // namespace zinc_rt::jinja
