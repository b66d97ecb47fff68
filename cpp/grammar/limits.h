// Defines the limits on a grammar, its compilation and each of its steps. Grammars come from requests and are not
// trusted. Work is counted, not timed, so the same grammar and tokens have the same result on every machine. Exceeding
// a limit is an error of kInvalidArgument with Reason::kGrammarTooComplex; its message has the number and the limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace zinc_rt::grammar {

struct Limits {
  std::size_t max_source_bytes = 256u << 10;  // bytes of a schema, of a grammar's text, or of all choices together
  std::size_t max_depth = 64;                 // nesting of a source, and of groups of a pattern
  std::size_t max_pattern_bytes = 4u << 10;   // most bytes of one regular expression
  std::uint32_t max_repeat = 10'000;          // largest number in {m,n}, minItems, maxLength and similar keywords
  std::size_t max_rules = 100'000;            // most rules of a compiled grammar
  std::size_t max_regex_nodes = 300'000;      // most regex nodes of a compiled grammar
  std::uint64_t compile_work = 4'000'000;     // work of compiling one grammar with all its parts, in units of Fuel
  std::uint64_t step_work = 3'000'000;        // work of one call of accept or fill, in units of Fuel
  std::size_t max_items = 400'000;            // items of a matcher's parse, 12 bytes each
  std::size_t max_lexer_bytes = 16u << 20;  // bytes of states, regexes and token sets that matchers of a grammar share
};

inline std::unexpected<Error> too_complex(std::string_view what, std::uint64_t n, std::uint64_t limit) {
  return fail({StatusCode::kInvalidArgument, "", Reason::kGrammarTooComplex},
              "[grammar_too_complex] {}: {} wanted, at most {} allowed", what, n, limit);
}
inline bool is_too_complex(const Error& error) {
  return error.reason == Reason::kGrammarTooComplex;
}

// Fuel counts work against a limit, in units of some nanoseconds. Compiling costs 1 per value, name or part, at any
// depth. A step costs 1 per node of the vocabulary's tree, kItemWork per item of the parse, and kWeightWork times the
// state's weight per lexer state. Work that a cache saved is counted too, so that the result does not depend on the
// cache.
inline constexpr std::uint64_t kItemWork = 8, kWeightWork = 8;

class Fuel {
 public:
  explicit Fuel(std::uint64_t limit, std::stop_token cancel = {}) : limit_(limit), cancel_(std::move(cancel)) {}
  void use(std::uint64_t n) { used_ += n; }
  bool is_spent() const { return used_ > limit_; }
  std::uint64_t used() const { return used_; }
  std::uint64_t limit() const { return limit_; }
  // Limits the work to the fraction `part` of what is left. Returns the old limit, which widen() must set again.
  std::uint64_t narrow(double part) {
    const std::uint64_t left = is_spent() ? 0 : limit_ - used_;
    return std::exchange(limit_, used_ + static_cast<std::uint64_t>(part * static_cast<double>(left)));
  }
  void widen(std::uint64_t limit) { limit_ = limit; }
  // Returns an error if the work is used up (too complex) or the request was cancelled (kCancelled).
  Status check(std::string_view what) const {
    if (is_spent()) return too_complex(what, used_, limit_);
    if (cancel_.stop_requested()) return fail(StatusCode::kCancelled, "[grammar] the request was taken back");
    return {};
  }

 private:
  std::uint64_t limit_;
  std::uint64_t used_ = 0;
  std::stop_token cancel_;
};

// CompileWork counts the work of compiling one grammar. All parts of the grammar share it.
struct CompileWork {
  explicit CompileWork(const Limits& limits, std::stop_token cancel = {})
      : fuel(limits.compile_work, std::move(cancel)), search(limits.compile_work / 8) {}
  Fuel fuel;
  std::uint64_t search;  // steps that are left for searching whether regexes match anything
};

}  // namespace zinc_rt::grammar
