// Declares tables that say how BERT's uncased normalizer treats each character. Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace zinc_rt::wordpiece_tables {

enum Kind : std::uint8_t { kKeep, kSpace, kDrop, kPunctuation, kIdeograph };

// The characters from `first` to the next run's `first` have this kind.
struct KindRun {
  char32_t first;
  Kind kind;
};
// The runs ascend. The first one begins at U+0000.
extern const KindRun kind_runs[];
extern const std::size_t n_kind_runs;

// Maps a character to what replaces it: its decomposition without marks, in lower case. That is up to three characters,
// then 0. The table ascends and leaves out unchanged characters and Hangul syllables.
struct Fold {
  char32_t from;
  char32_t to[3];
};
extern const Fold folds[];
extern const std::size_t n_folds;

}  // namespace zinc_rt::wordpiece_tables
