// The properties of characters that Unicode's normalization form C needs. Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace zinc_rt::nfc_tables {

// Characters from `first` to `last` have this combining class. Ascending; characters of class 0 are left out.
struct ClassRun {
  char32_t first, last;
  std::uint8_t combining_class;
};
extern const ClassRun class_runs[];
extern const std::size_t n_class_runs;

// The full canonical decomposition of a character: up to four characters, then 0. Ascending. Hangul syllables are left
// out.
struct Decomposition {
  char32_t from;
  char32_t to[4];
};
extern const Decomposition decompositions[];
extern const std::size_t n_decompositions;

// Two characters that compose a third. Ascending by both. Hangul is left out.
struct Pair {
  char32_t first, second, composed;
};
extern const Pair pairs[];
extern const std::size_t n_pairs;

}  // namespace zinc_rt::nfc_tables
