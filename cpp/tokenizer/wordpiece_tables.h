// What BERT's uncased normalizer does to each character. Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace zinc_rt::wordpiece_tables {

enum Kind : std::uint8_t { kKeep, kSpace, kDrop, kPunctuation, kIdeograph };

// Characters from `first` on, to the next run.
struct KindRun {
  char32_t first;
  Kind kind;
};
// Ascending; the first is of U+0000.
extern const KindRun kind_runs[];
extern const std::size_t n_kind_runs;

// What a character becomes: decomposed, without marks, in lower case; up to three, then 0. Ascending. Characters that
// stay, and Hangul syllables, are not there.
struct Fold {
  char32_t from;
  char32_t to[3];
};
extern const Fold folds[];
extern const std::size_t n_folds;

}  // namespace zinc_rt::wordpiece_tables
