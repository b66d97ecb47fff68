#include "base/utf8.h"

#include <cstring>

namespace zinc_rt {
namespace {

struct Lead {
  std::uint8_t n_bytes;  // length of the sequence; 0 if the byte cannot begin one
  std::uint8_t second_low;
  std::uint8_t second_high;
};

// Returns what a lead byte requires: the length of the sequence, and the range of its second byte. The range excludes
// overlong forms, surrogates and values above U+10FFFF.
constexpr Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Returns the length of the well-formed sequence at the start of `text`, and sets `whole` to true. If `text` does not
// start with one, sets `whole` to false and returns the length, at least 1, of the longest beginning of a well-formed
// sequence.
std::size_t sequence_prefix(std::string_view text, bool& whole) {
  const Lead lead = lead_of(static_cast<std::uint8_t>(text[0]));
  whole = lead.n_bytes == 1;
  if (lead.n_bytes < 2) return 1;
  for (std::size_t i = 1; i < lead.n_bytes; ++i) {
    if (i == text.size()) return i;
    const auto byte = static_cast<std::uint8_t>(text[i]);
    const std::uint8_t low = i == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return i;
  }
  whole = true;
  return lead.n_bytes;
}

}  // namespace

std::size_t utf8_sequence_bytes(std::string_view text) {
  if (text.empty()) return 0;
  bool whole = false;
  const std::size_t n = sequence_prefix(text, whole);
  return whole ? n : 0;
}

bool has_control_characters(std::string_view utf8) {
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(utf8[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    const auto rest = utf8.substr(i);
    if (byte == 0xC2 && rest.size() > 1 && static_cast<std::uint8_t>(rest[1]) < 0xA0) return true;
    if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) return true;
  }
  return false;
}

std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    // Most text is ASCII, so eight bytes are tested at a time.
    std::uint64_t word;
    while (at + 8 <= text.size() && (std::memcpy(&word, text.data() + at, 8), (word & 0x8080808080808080u) == 0))
      at += 8;
    if (at == text.size()) break;
    const std::size_t n = utf8_sequence_bytes(text.substr(at, 4));
    if (n == 0) break;
    at += n;
  }
  return at;
}

char32_t utf8_code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<std::uint8_t>(sequence[i])); };
  switch (sequence.size()) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3: return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default: return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<std::uint8_t>(byte))); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  Utf8Repair repair;
  repair.push(text, out);
  repair.finish(out);
  return out;
}

void Utf8Repair::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (n_held_ > 0) {
    joined.assign(held_, n_held_).append(bytes);
    bytes = joined;
    n_held_ = 0;
  }
  while (!bytes.empty()) {
    const std::size_t valid = utf8_valid_prefix(bytes);
    out.append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    bool whole = false;
    const std::size_t n = sequence_prefix(bytes, whole);
    if (n == bytes.size() && lead_of(static_cast<std::uint8_t>(bytes[0])).n_bytes > n) {
      std::memcpy(held_, bytes.data(), n);
      n_held_ = static_cast<std::uint8_t>(n);
      break;
    }
    out.append(kReplacementCharacter);
    bytes.remove_prefix(n);
  }
}

void Utf8Repair::finish(std::string& out) {
  if (n_held_ > 0) out.append(kReplacementCharacter);
  n_held_ = 0;
}

}  // namespace zinc_rt
