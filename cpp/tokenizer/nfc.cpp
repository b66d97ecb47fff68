#include "tokenizer/nfc.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstring>
#include <span>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/nfc_tables.h"

namespace zinc_rt {
namespace {

using namespace nfc_tables;

// The first code points of Hangul syllables and letters, and the numbers of letters. A syllable consists of a leading
// consonant, a vowel and possibly a trailing consonant, in this order.
constexpr char32_t kSyllable = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTrail = 0x11A7;
constexpr char32_t kLeads = 19, kVowels = 21, kTrails = 28;

bool is_in(char32_t c, char32_t first, char32_t n) {
  // if c < first, the difference wraps around and is large
  return c - first < n;
}

std::uint8_t class_of(char32_t c) {
  const std::span runs(class_runs, n_class_runs);
  const auto it = std::ranges::lower_bound(runs, c, {}, &ClassRun::last);
  return it != runs.end() && c >= it->first ? it->combining_class : 0;
}

void append_decomposed(char32_t c, std::u32string& out) {
  if (is_in(c, kSyllable, kLeads * kVowels * kTrails)) {
    const char32_t n = c - kSyllable;
    out += kLead + n / (kVowels * kTrails);
    out += kVowel + n / kTrails % kVowels;
    if (n % kTrails != 0) out += kTrail + n % kTrails;
    return;
  }
  const std::span all(decompositions, n_decompositions);
  const auto it = std::ranges::lower_bound(all, c, {}, &Decomposition::from);
  if (it == all.end() || it->from != c) {
    out += c;
    return;
  }
  for (const char32_t part : it->to)
    if (part != 0) out += part;
}

// Returns the character that two characters compose, or 0 if they do not compose.
char32_t composed(char32_t first, char32_t second) {
  if (is_in(first, kLead, kLeads) && is_in(second, kVowel, kVowels))
    return kSyllable + ((first - kLead) * kVowels + (second - kVowel)) * kTrails;
  if (is_in(first, kSyllable, kLeads * kVowels * kTrails) && (first - kSyllable) % kTrails == 0 &&
      is_in(second, kTrail + 1, kTrails - 1))
    return first + (second - kTrail);
  const std::span all(pairs, n_pairs);
  const auto it = std::ranges::lower_bound(all, std::pair(first, second), {},
                                           [](const Pair& p) { return std::pair(p.first, p.second); });
  return it != all.end() && it->first == first && it->second == second ? it->composed : 0;
}

// Returns the set of "active" characters, which normalization may change: characters with a combining class, characters
// that always decompose, and characters that may compose with the character before. No other character changes or
// causes a change of the character before it.
constexpr char32_t kFirstActive = 0x300, kPastActive = 0x30000;
using Active = std::bitset<kPastActive>;
const Active& active() {
  static const Active made = [] {
    Active out;
    const auto set = [&](char32_t first, char32_t n) {
      for (char32_t c = first; c < first + n; ++c) out.set(c);
    };
    for (const ClassRun& run : std::span(class_runs, n_class_runs))
      if (run.last < kPastActive) set(run.first, run.last - run.first + 1);
    for (const Decomposition& one : std::span(decompositions, n_decompositions)) out.set(one.from);
    // If the parts of a character compose to the same character again, it does not change.
    for (const Pair& pair : std::span(pairs, n_pairs)) out.reset(pair.composed);
    for (const Pair& pair : std::span(pairs, n_pairs)) out.set(pair.second);
    set(kVowel, kVowels);
    set(kTrail + 1, kTrails - 1);
    return out;
  }();
  return made;
}

// Sorts the marks between two characters of class 0 by their classes. The order of marks of equal class does not
// change.
class Reordering {
 public:
  void operator()(std::u32string& text) {
    classes_.clear();
    for (const char32_t c : text) classes_.push_back(class_of(c));
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin;
      while (end < text.size() && classes_[end] != 0) ++end;
      if (!std::is_sorted(at(begin), at(end))) sort(text, begin, end);
      begin = end + 1;
    }
  }
  std::span<const std::uint8_t> classes() const { return classes_; }

 private:
  std::vector<std::uint8_t>::iterator at(std::size_t i) { return classes_.begin() + static_cast<std::ptrdiff_t>(i); }

  // Sorts one run of marks. This is a counting sort, so that the time is linear.
  void sort(std::u32string& text, std::size_t begin, std::size_t end) {
    std::array<std::size_t, 257> next{};
    for (std::size_t i = begin; i < end; ++i) ++next[classes_[i] + 1u];
    for (std::size_t c = 1; c < next.size(); ++c) next[c] += next[c - 1];
    const std::u32string old = text.substr(begin, end - begin);
    const std::vector<std::uint8_t> of(at(begin), at(end));
    for (std::size_t i = 0; i < old.size(); ++i) {
      const std::size_t to = begin + next[of[i]]++;
      text[to] = old[i];
      classes_[to] = of[i];
    }
  }

  std::vector<std::uint8_t> classes_;
};

// Normalizes one part of a text. A part begins at a character that is not active, or at the text's start.
class Normalizer {
 public:
  void append(std::u32string_view stretch, std::string& out) {
    text_.clear();
    for (const char32_t c : stretch) append_decomposed(c, text_);
    reorder_(text_);
    const auto classes = reorder_.classes();
    // n is the number of characters that are final. `starter` is the index of the last of them that has class 0.
    std::size_t n = 0, starter = text_.size();
    std::uint8_t last_class = 0;  // combining class of the previous character
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const std::uint8_t of = classes[i];
      // Two characters do not compose if a mark of the same class as the second, or a character of class 0, stands
      // between them.
      const bool is_next = starter < n && (n == starter + 1 || (last_class != 0 && last_class < of));
      if (const char32_t made = is_next ? composed(text_[starter], text_[i]) : 0; made != 0) {
        text_[starter] = made;
        continue;
      }
      if (of == 0) starter = n;
      last_class = of;
      text_[n++] = text_[i];
    }
    for (std::size_t i = 0; i < n; ++i) append_utf8(out, text_[i]);
  }

 private:
  std::u32string text_;
  Reordering reorder_;
};

// Returns how many bytes from `at` on belong to characters below U+0300. These are never active, so they are skipped
// fast.
std::size_t skip_plain(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  for (std::uint64_t word; at + 8 <= text.size(); at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    if ((word & kHighBits) != 0) break;
  }
  while (at < text.size() && static_cast<std::uint8_t>(text[at]) < 0xCC) ++at;
  return at;
}

struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool is_valid = false;
  bool is_active() const { return is_valid && code >= kFirstActive && code < kPastActive && active()[code]; }
};

Character character_at(std::string_view text, std::size_t at) {
  const std::size_t n = utf8_sequence_bytes(text.substr(at, 4));
  if (n == 0) return {};
  return {utf8_code_point(text.substr(at, n)), n, true};
}

}  // namespace

std::optional<std::string> to_nfc(std::string_view text) {
  std::string out;
  std::size_t done = 0;
  Normalizer normalize;
  std::u32string stretch;
  for (std::size_t at = skip_plain(text, 0); at < text.size(); at = skip_plain(text, at)) {
    Character c = character_at(text, at);
    if (!c.is_active()) {
      at += c.bytes;
      continue;
    }
    // The part begins with the previous character, because normalization could compose it with the active character at
    // this place.
    std::size_t begin = at;
    stretch.clear();
    if (at > done) {
      std::size_t before = at - 1;
      while (before > done && at - before < 4 && (static_cast<std::uint8_t>(text[before]) & 0xC0) == 0x80) --before;
      if (const Character one = character_at(text, before); one.is_valid && before + one.bytes == at) {
        stretch += one.code;
        begin = before;
      }
    }
    for (; at < text.size() && c.is_active(); c = at < text.size() ? character_at(text, at) : Character()) {
      stretch += c.code;
      at += c.bytes;
    }
    out.append(text, done, begin - done);
    normalize.append(stretch, out);
    done = at;
  }
  if (done == 0) return std::nullopt;
  return out.append(text, done);
}

}  // namespace zinc_rt
