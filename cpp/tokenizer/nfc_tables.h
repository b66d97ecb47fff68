// Declares tables of the properties of characters that Unicode's normalization form C needs. Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace zinc_rt::nfc_tables {

// The characters from `first` to `last` have this combining class. The runs ascend and leave out characters of class 0.
struct ClassRun {
  char32_t first, last;
  std::uint8_t combining_class;
};
extern const ClassRun class_runs[];
extern const std::size_t n_class_runs;

// Holds the full canonical decomposition of a character: up to four characters, then 0. The table ascends by `from` and
// leaves out Hangul syllables.
struct Decomposition {
  char32_t from;
  char32_t to[4];
};
extern const Decomposition decompositions[];
extern const std::size_t n_decompositions;

// Says that two characters compose a third. The table ascends by both and leaves out Hangul.
struct Pair {
  char32_t first, second, composed;
};
extern const Pair pairs[];
extern const std::size_t n_pairs;

}  // namespace zinc_rt::nfc_tables
