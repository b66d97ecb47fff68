// Implements the filter wordwrap: Python's textwrap with the options that Jinja sets (tabs are not expanded, white
// space is not replaced). It makes one pass over the text and builds no list of its words.
#include <algorithm>
#include <optional>

#include "jinja/filters.h"
#include "jinja/loop.h"
#include "jinja/ops.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja::filters {

namespace {

struct WrapStyle {
  std::int64_t width = 79;
  bool break_long_words = true;
  bool break_on_hyphens = true;
};

// A Chunk is a word or a run of white space: the bytes [begin, end) of a line.
struct Chunk {
  std::size_t begin = 0, end = 0;
  std::int64_t n_chars = 0;
};

// Splits a line into chunks, one per call of next(). If `hyphens` is true, a word also ends after a hyphen between
// letters ("well-" "known") and on both sides of a dash of two or more hyphens ("so", "--", "called").
class Chunks {
 public:
  Chunks(std::string_view line, bool hyphens) : line_(line), hyphens_(hyphens) {}

  std::optional<Chunk> next() {
    if (at_ == line_.size()) return std::nullopt;
    Chunk chunk{at_, at_, 0};
    if (is_white(at_)) {
      while (at_ < line_.size() && is_white(at_)) ++at_;
      chunk.n_chars = static_cast<std::int64_t>(at_ - chunk.begin);
    } else if (const std::size_t end = hyphens_ ? dash_end(at_) : 0; end > 0) {
      chunk.n_chars = static_cast<std::int64_t>(end - at_);
      at_ = end;
    } else {
      do {
        at_ += char_at(line_, at_).size;
        ++chunk.n_chars;
        if (hyphens_ && at_ < line_.size() && is_word_hyphen(at_)) {
          ++at_;
          ++chunk.n_chars;
          break;
        }
      } while (at_ < line_.size() && !is_white(at_) && !(hyphens_ && dash_end(at_) > 0));
    }
    chunk.end = at_;
    return chunk;
  }

 private:
  bool is_white(std::size_t at) const { return line_[at] == ' ' || (line_[at] >= '\t' && line_[at] <= '\r'); }
  static bool is_word(std::uint32_t code) { return code == '_' || (char_flags(code) & kAlnum) != 0; }
  static bool is_letter(std::uint32_t code) { return is_word(code) && (char_flags(code) & kDecimal) == 0; }
  static bool is_word_or_mark(std::uint32_t code) {
    return is_word(code) || (code < 0x80 && std::string_view("!\"'&.,?").contains(static_cast<char>(code)));
  }

  // Returns the end of a dash that begins at `at` between two words. Returns 0 if no dash begins at `at`.
  std::size_t dash_end(std::size_t at) const {
    if (line_[at] != '-' || at == 0 || !is_word_or_mark(char_before(line_, at).code)) return 0;
    const std::size_t end = line_.find_first_not_of('-', at);
    return end != std::string_view::npos && end - at >= 2 && is_word(char_at(line_, end).code) ? end : 0;
  }

  // Returns whether a word may end after line[at]. Before this end there must be two letters and a hyphen, or a letter,
  // a hyphen, one character and a hyphen. After it there must be two letters, or a letter, a hyphen and a letter.
  bool is_word_hyphen(std::size_t at) const {
    if (line_[at] != '-') return false;
    const Char one = char_before(line_, at);
    if (one.size == at) return false;
    const Char two = char_before(line_, at - one.size);
    bool before = is_letter(one.code) && is_letter(two.code);
    if (!before && two.code == '-' && is_word_or_mark(one.code) && one.size + 1 < at)
      before = is_letter(char_before(line_, at - one.size - 1).code);
    if (!before || at + 1 == line_.size()) return false;
    const Char first = char_at(line_, at + 1);
    std::size_t next = at + 1 + first.size;
    if (!is_letter(first.code) || next == line_.size()) return false;
    if (line_[next] == '-' && ++next == line_.size()) return false;
    return is_letter(char_at(line_, next).code);
  }

  const std::string_view line_;
  const bool hyphens_;
  std::size_t at_ = 0;
};

bool is_blank(std::string_view text) {
  return leading_space(text) == text.size();
}

// Returns how many bytes of a word fit into a line with room for n characters. REQUIRES: the whole word does not fit.
std::size_t break_word(std::string_view word, std::int64_t n, bool break_on_hyphens) {
  const std::size_t end = char_offset(word, static_cast<std::size_t>(n), false);
  if (!break_on_hyphens) return end;
  const std::size_t hyphen = word.substr(0, end).rfind('-');
  if (hyphen == std::string_view::npos || word.find_first_not_of('-') >= hyphen) return end;
  return hyphen + 1;
}

// Fills lines with as many words as fit, one line after another. Appends the lines to `out`, with `between` before each
// line except the first.
Status wrap_line(Runtime& rt, MarkedView marked, const WrapStyle& style, MarkedView between, MarkedText& out) {
  const std::string_view line = marked.text();
  Chunks chunks(line, style.break_on_hyphens);
  std::optional<Chunk> next = chunks.next();
  const auto advance = [&] {
    next = chunks.next();
    return rt.over(1 + (next ? (next->end - next->begin) / 64 : 0));
  };
  bool first = true;
  while (next) {
    if (rt.over()) return rt.limit_error();
    if (!first && is_blank(line.substr(next->begin, next->end - next->begin)) && advance()) return rt.limit_error();
    if (!next) break;
    // The line that is being filled is line[begin, end). Its last chunk starts at `last`.
    const std::size_t begin = next->begin;
    std::size_t end = begin, last = begin;
    std::int64_t used = 0;
    while (next && used + next->n_chars <= style.width) {
      used += next->n_chars;
      last = next->begin;
      end = next->end;
      if (advance()) return rt.limit_error();
    }
    if (next && next->n_chars > style.width) {
      if (style.break_long_words) {
        const std::string_view word = line.substr(next->begin, next->end - next->begin);
        last = next->begin;
        end = last + break_word(word, style.width - used, style.break_on_hyphens);
        next->n_chars -= static_cast<std::int64_t>(count_chars(line.substr(last, end - last)));
        next->begin = end;
      } else if (end == begin) {
        end = next->end;
        if (advance()) return rt.limit_error();
      }
    }
    if (is_blank(line.substr(last, end - last))) end = last;
    if (end == begin) continue;
    if (!first) out += between;
    out += marked.sub(begin, end - begin);
    ZRT_CHECK_OK(rt.reserve(out.held_bytes() + between.size()));
    first = false;
  }
  return {};
}

}  // namespace

Result<Value> wordwrap(Runtime& rt, const Value& self, Args& args) {
  ZRT_TRY(auto a, bind("wordwrap", args, {"width", "break_long_words", "wrapstring", "break_on_hyphens"}, 0));
  if (self.is_undefined()) return undefined_error(rt, self);
  ZRT_TRY(std::string_view text, need_str("the operand of wordwrap", self));
  WrapStyle style;
  if (!a[0].is_missing()) {
    ZRT_TRY(style.width, need_int("width", a[0]));
  }
  if (style.width <= 0 && !text.empty()) return raise("invalid width {} (must be > 0)", style.width);
  style.break_long_words = a[1].is_missing() || truthy(a[1]);
  MarkedView between("\n");
  if (a[2].is_str()) between = a[2].view();
  style.break_on_hyphens = a[3].is_missing() || truthy(a[3]);
  ZRT_TRY(const std::vector<std::string_view> paragraphs, split_lines(rt, text, false));
  MarkedText out;
  for (std::size_t i = 0; i < paragraphs.size(); ++i) {
    if (i > 0) out += between;
    ZRT_CHECK_OK(rt.reserve(out.held_bytes() + between.size()));
    ZRT_CHECK_OK(wrap_line(rt, self.view().sub(paragraphs[i]), style, between, out));
  }
  return rt.str(std::move(out));
}

}  // namespace zinc_rt::jinja::filters
