#include "jinja/unicode.h"

#include <algorithm>
#include <cstring>

#include "base/utf8.h"
#include "jinja/unicode_tables.h"

namespace zinc_rt::jinja {

namespace {

using tables::CaseRun;
using tables::CaseSpecial;

struct CaseMap {
  const CaseRun* runs;
  std::size_t n_runs;
  const CaseSpecial* special;
  std::size_t n_special;
};

CaseMap upper_map() {
  return {tables::upper_runs, tables::n_upper_runs, tables::upper_special, tables::n_upper_special};
}
CaseMap lower_map() {
  return {tables::lower_runs, tables::n_lower_runs, tables::lower_special, tables::n_lower_special};
}
CaseMap title_map() {
  return {tables::title_runs, tables::n_title_runs, tables::title_special, tables::n_title_special};
}

void append_mapped(std::string& out, std::uint32_t code, const CaseMap& map) {
  const CaseSpecial* special = std::lower_bound(map.special, map.special + map.n_special, code,
                                                [](const CaseSpecial& s, std::uint32_t c) { return s.code < c; });
  if (special != map.special + map.n_special && special->code == code) {
    out += special->text;
    return;
  }
  const CaseRun* end = map.runs + map.n_runs;
  const CaseRun* run =
      std::upper_bound(map.runs, end, code, [](std::uint32_t c, const CaseRun& r) { return c < r.first; });
  // Runs with stride 2 may interleave with another run, so the two nearest runs that begin at or below `code` are
  // tried.
  for (int back = 0; back < 2 && run != map.runs; ++back) {
    --run;
    if (code <= run->last && (code - run->first) % run->stride == 0) {
      append_char(out, static_cast<std::uint32_t>(static_cast<std::int64_t>(code) + run->delta));
      return;
    }
  }
  append_char(out, code);
}

// Returns whether a capital sigma becomes a final sigma in lower case: if a cased letter precedes it and none follows.
// Case-ignorable characters in between are skipped.
bool is_final_sigma(std::string_view text, std::size_t pos, std::size_t size) {
  bool cased_before = false;
  for (std::size_t i = pos; i > 0;) {
    Char c = char_before(text, i);
    i -= c.size;
    std::uint16_t flags = char_flags(c.code);
    if (flags & kCaseIgnorable) continue;
    cased_before = (flags & kCased) != 0;
    break;
  }
  if (!cased_before) return false;
  for (std::size_t i = pos + size; i < text.size();) {
    Char c = char_at(text, i);
    i += c.size;
    std::uint16_t flags = char_flags(c.code);
    if (flags & kCaseIgnorable) continue;
    return (flags & kCased) == 0;
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, std::size_t pos, Char c) {
  if (c.code == 0x3a3) {
    append_char(out, is_final_sigma(text, pos, c.size) ? 0x3c2 : 0x3c3);
  } else if (c.code < 0x80) {
    out.push_back(static_cast<char>(c.code >= 'A' && c.code <= 'Z' ? c.code + 32 : c.code));
  } else {
    append_mapped(out, c.code, lower_map());
  }
}

void append_upper(std::string& out, Char c) {
  if (c.code < 0x80) {
    out.push_back(static_cast<char>(c.code >= 'a' && c.code <= 'z' ? c.code - 32 : c.code));
  } else {
    append_mapped(out, c.code, upper_map());
  }
}

template <class Visit>
std::string map_chars(std::string_view text, Visit visit) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t pos = 0; pos < text.size();) {
    Char c = char_at(text, pos);
    visit(out, pos, c);
    pos += c.size;
  }
  return out;
}

}  // namespace

Char char_at(std::string_view text, std::size_t pos) {
  const auto sequence = text.substr(pos, 4);
  const std::size_t size = utf8_sequence_bytes(sequence);
  if (size == 0) return {kInvalidChar + static_cast<unsigned char>(text[pos]), 1};
  return {utf8_code_point(sequence.substr(0, size)), static_cast<std::uint32_t>(size)};
}

Char char_before(std::string_view text, std::size_t pos) {
  std::size_t start = pos - 1;
  while (start > 0 && pos - start < 4 && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80) --start;
  Char c = char_at(text, start);
  if (c.size == pos - start) return c;
  return {kInvalidChar + static_cast<unsigned char>(text[pos - 1]), 1};
}

void append_char(std::string& out, std::uint32_t code) {
  if (code >= kInvalidChar) {
    out.push_back(static_cast<char>(code - kInvalidChar));
  } else {
    append_utf8(out, code);
  }
}

std::size_t count_chars(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t pos = 0; pos < text.size(); ++n) pos += char_at(text, pos).size;
  return n;
}

std::size_t char_offset(std::string_view text, std::size_t n, bool is_ascii) {
  if (is_ascii) return std::min(n, text.size());
  std::size_t pos = 0;
  for (; n > 0 && pos < text.size(); --n) pos += char_at(text, pos).size;
  return pos;
}

std::uint16_t char_flags(std::uint32_t code) {
  if (code >= kInvalidChar) return 0;
  const tables::FlagRun* end = tables::flag_runs + tables::n_flag_runs;
  const tables::FlagRun* run = std::upper_bound(tables::flag_runs, end, code,
                                                [](std::uint32_t c, const tables::FlagRun& r) { return c < r.first; });
  return (run - 1)->flags;
}

std::string to_upper(std::string_view text) {
  return map_chars(text, [](std::string& out, std::size_t, Char c) { append_upper(out, c); });
}

std::string to_lower(std::string_view text) {
  return map_chars(text, [&](std::string& out, std::size_t pos, Char c) { append_lower(out, text, pos, c); });
}

std::string to_title(std::string_view text) {
  bool after_cased = false;
  return map_chars(text, [&](std::string& out, std::size_t pos, Char c) {
    if (after_cased) {
      append_lower(out, text, pos, c);
    } else {
      append_mapped(out, c.code, title_map());
    }
    after_cased = (char_flags(c.code) & (kLower | kUpper | kTitle)) != 0;
  });
}

std::string to_capitalized(std::string_view text) {
  return map_chars(text, [&](std::string& out, std::size_t pos, Char c) {
    if (pos > 0) {
      append_lower(out, text, pos, c);
    } else {
      append_mapped(out, c.code, title_map());
    }
  });
}

std::string to_folded(std::string_view text) {
  CaseMap map{tables::fold_runs, tables::n_fold_runs, tables::fold_special, tables::n_fold_special};
  return map_chars(text, [&](std::string& out, std::size_t, Char c) { append_mapped(out, c.code, map); });
}

std::string to_swapped(std::string_view text) {
  return map_chars(text, [&](std::string& out, std::size_t pos, Char c) {
    std::uint16_t flags = char_flags(c.code);
    if (flags & kUpper) {
      append_lower(out, text, pos, c);
    } else if (flags & kLower) {
      append_upper(out, c);
    } else {
      append_char(out, c.code);
    }
  });
}

std::size_t leading_space(std::string_view text) {
  std::size_t pos = 0;
  while (pos < text.size()) {
    Char c = char_at(text, pos);
    if (!is_space(c.code)) break;
    pos += c.size;
  }
  return pos;
}

std::size_t trailing_space(std::string_view text) {
  std::size_t pos = text.size();
  while (pos > 0) {
    Char c = char_before(text, pos);
    if (!is_space(c.code)) break;
    pos -= c.size;
  }
  return text.size() - pos;
}

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // memmem is used because it takes linear time, which std::string_view::find does not.
  const void* hit = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (hit == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
}

std::size_t rfind_text(std::string_view text, std::string_view needle) {
  if (needle.size() <= 4) return text.rfind(needle);
  std::string back(text.rbegin(), text.rend());
  std::string back_needle(needle.rbegin(), needle.rend());
  std::size_t pos = find_text(back, back_needle);
  return pos == std::string_view::npos ? pos : text.size() - pos - needle.size();
}

}  // namespace zinc_rt::jinja
