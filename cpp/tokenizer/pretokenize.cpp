#include "tokenizer/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace zinc_rt {
namespace {

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeStack {
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};

// Returns the pattern with \s and \S written as Unicode's White_Space property. PCRE2's own \s also matches U+180E,
// which Unicode no longer counts as white space.
std::string with_unicode_space(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out.push_back(pattern[i]);
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's') {
      out += "\\p{wspace}";
    } else if (escaped == 'S') {
      out += "\\P{wspace}";
    } else {
      out.push_back('\\');
      out.push_back(escaped);
    }
  }
  return out;
}

std::string engine_message(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

constexpr std::size_t kJitStackStart = 32 * 1024;
constexpr std::size_t kJitStackMax = 16 * 1024 * 1024;

}  // namespace

struct Pretokenizer::Pattern {
  std::unique_ptr<pcre2_code, FreeCode> code;
  bool jit = false;
};

// Holds the memory that the regex engine needs for one call of split(). There is one match block per pattern, because
// the match of an outer pattern is still in use while the inner patterns run.
struct Pretokenizer::Scratch {
  std::vector<std::unique_ptr<pcre2_match_data, FreeMatchData>> matches;
  std::unique_ptr<pcre2_match_context, FreeContext> context;
  std::unique_ptr<pcre2_jit_stack, FreeStack> stack;  // allocated when a match needs more than the machine stack

  bool grow() {
    if (stack != nullptr) return false;
    stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr));
    if (stack == nullptr) return false;
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    return true;
  }

  int match(const Pattern& pattern, std::size_t level, std::string_view text, std::size_t from, std::uint32_t options) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    pcre2_match_data* data = matches[level].get();
    if (pattern.jit) {
      int result = pcre2_jit_match(pattern.code.get(), subject, text.size(), from, options, data, context.get());
      if (result == PCRE2_ERROR_JIT_STACKLIMIT && grow())
        result = pcre2_jit_match(pattern.code.get(), subject, text.size(), from, options, data, context.get());
      if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
    }
    return pcre2_match(pattern.code.get(), subject, text.size(), from, options | PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       data, context.get());
  }
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::Pretokenizer(Pretokenizer&&) noexcept = default;
Pretokenizer& Pretokenizer::operator=(Pretokenizer&&) noexcept = default;
Pretokenizer::~Pretokenizer() = default;

namespace {

std::unexpected<Error> no_memory(const char* what) {
  auto error = fail(StatusCode::kExhausted, "[tokenizer] no memory for {}", what);
  error.error().retry_after_s = 1;
  return error;
}

}  // namespace

Result<Pretokenizer> Pretokenizer::create(const PreRule& rule) {
  Pretokenizer made;
  for (const std::string_view pattern : rule.patterns) {
    if (pattern.empty()) break;
    const std::string source = with_unicode_space(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &offset, nullptr);
    if (code == nullptr)
      return fail(StatusCode::kInternal, "[tokenizer] pre-tokenizer \"{}\": pattern of {} bytes fails at byte {}: {}",
                  rule.name, source.size(), offset, engine_message(error));
    Pattern& added = made.patterns_.emplace_back();
    added.code.reset(code);
    // JIT fails if the system forbids executable memory. PCRE2's interpreter then finds the same matches.
    added.jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  }
  return made;
}

bool Pretokenizer::uses_jit() const {
  for (const Pattern& pattern : patterns_) {
    if (!pattern.jit) return false;
  }
  return true;
}

Result<bool> Pretokenizer::split(std::string_view text, PieceSink& sink) const {
  Scratch scratch;
  scratch.context.reset(pcre2_match_context_create(nullptr));
  if (scratch.context == nullptr) return no_memory("a match context");
  // PCRE2's limit on steps exists for patterns whose time explodes. These patterns are linear, so a limit would refuse
  // only a very long text.
  pcre2_set_match_limit(scratch.context.get(), 0xFFFFFFFFu);
  for (const Pattern& pattern : patterns_) {
    scratch.matches.emplace_back(pcre2_match_data_create_from_pattern(pattern.code.get(), nullptr));
    if (scratch.matches.back() == nullptr) return no_memory("a match");
  }
  while (!text.empty()) {
    const std::size_t valid = utf8_valid_prefix(text);
    ZRT_TRY(const bool goes_on, split_valid(text.substr(0, valid), 0, scratch, sink));
    if (!goes_on) return false;
    text.remove_prefix(valid);
    std::size_t broken = 0;
    while (broken < text.size() && utf8_sequence_bytes(text.substr(broken, 4)) == 0) ++broken;
    if (broken > 0 && !sink.piece(text.substr(0, broken))) return false;
    text.remove_prefix(broken);
  }
  return true;
}

Result<bool> Pretokenizer::split_valid(std::string_view text, std::size_t level, Scratch& scratch,
                                       PieceSink& sink) const {
  if (text.empty()) return true;
  if (level == patterns_.size()) return sink.piece(text);
  const Pattern& pattern = patterns_[level];
  std::size_t done = 0;  // the text before this index was passed to the next pattern
  std::size_t from = 0;
  std::uint32_t options = 0;
  while (from < text.size()) {
    const int result = scratch.match(pattern, level, text, from, options);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0)
      return fail(StatusCode::kInternal, "[tokenizer] pre-tokenizer pattern {}: {} (error {})", level,
                  engine_message(result), result);
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(scratch.matches[level].get());
    const std::size_t begin = bounds[0];
    const std::size_t end = bounds[1];
    for (const auto part : {text.substr(done, begin - done), text.substr(begin, end - begin)}) {
      ZRT_TRY(const bool goes_on, split_valid(part, level + 1, scratch, sink));
      if (!goes_on) return false;
    }
    done = from = end;
    // An empty match only splits the text. The next search must not find it a second time.
    options = end == begin ? PCRE2_NOTEMPTY_ATSTART : 0;
  }
  return split_valid(text.substr(done), level + 1, scratch, sink);
}

}  // namespace zinc_rt
