// Declares tables of the character classes and case mappings of Python's str, sorted by first code point. A FlagRun
// covers the code points from its `first` to the one before the next run's `first`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zinc_rt::jinja::tables {

struct FlagRun {
  std::uint32_t first;
  std::uint16_t flags;  // set of CharFlag bits (unicode.h)
};

// Describes a run of case mappings: the code points first, first + stride, ..., last map to themselves plus delta.
struct CaseRun {
  std::uint32_t first;
  std::uint32_t last;
  std::uint8_t stride;
  std::int32_t delta;
};

// CaseSpecial maps one code point to more than one. `text` is the result in UTF-8.
struct CaseSpecial {
  std::uint32_t code;
  const char* text;
};

extern const FlagRun flag_runs[];
extern const std::size_t n_flag_runs;
extern const CaseRun upper_runs[];
extern const std::size_t n_upper_runs;
extern const CaseRun lower_runs[];
extern const std::size_t n_lower_runs;
extern const CaseRun title_runs[];
extern const std::size_t n_title_runs;
extern const CaseSpecial upper_special[];
extern const std::size_t n_upper_special;
extern const CaseSpecial lower_special[];
extern const std::size_t n_lower_special;
extern const CaseSpecial title_special[];
extern const std::size_t n_title_special;
extern const CaseRun fold_runs[];
extern const std::size_t n_fold_runs;
extern const CaseSpecial fold_special[];
extern const std::size_t n_fold_special;

}  // namespace zinc_rt::jinja::tables
