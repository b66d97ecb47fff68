#include "base/speculate.h"

#include "base/read_number.h"

namespace zinc_rt {

std::optional<Speculation> find_speculation(std::string_view text) {
  if (text == "auto") return Speculation{};
  if (text == "off") return Speculation{.most = 0};
  std::uint32_t n = 0;
  if (!read_number(text, n) || n < 1 || n > kMostGuesses) return std::nullopt;
  return Speculation{.most = n, .is_fixed = true};
}

}  // namespace zinc_rt
