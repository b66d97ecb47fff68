// How BERT's uncased normalizer treats each character. Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace zinc_rt::wordpiece_tables {

enum Kind : std::uint8_t { kKeep, kSpace, kDrop, kPunctuation, kIdeograph };

// The kind of the characters from `first` to the next run.
struct KindRun {
  char32_t first;
  Kind kind;
};
// Ascending. The first run begins at U+0000.
extern const KindRun kind_runs[];
extern const std::size_t n_kind_runs;

// The replacement of a character: decomposed, without marks, in lower case; up to three characters, then 0. Ascending.
// Unchanged characters and Hangul syllables are left out.
struct Fold {
  char32_t from;
  char32_t to[3];
};
extern const Fold folds[];
extern const std::size_t n_folds;

}  // namespace zinc_rt::wordpiece_tables
