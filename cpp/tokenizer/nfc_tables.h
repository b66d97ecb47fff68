// What Unicode's normalization form C needs to know of each character. Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace zinc_rt::nfc_tables {

// Characters from `first` to `last` have this combining class; those of class 0 are not there. Ascending.
struct ClassRun {
  char32_t first, last;
  std::uint8_t combining_class;
};
extern const ClassRun class_runs[];
extern const std::size_t n_class_runs;

// The whole canonical decomposition of a character: up to four, then 0. Ascending. Hangul syllables are not there.
struct Decomposition {
  char32_t from;
  char32_t to[4];
};
extern const Decomposition decompositions[];
extern const std::size_t n_decompositions;

// Two characters that compose a third. Ascending by both. Hangul is not there.
struct Pair {
  char32_t first, second, composed;
};
extern const Pair pairs[];
extern const std::size_t n_pairs;

}  // namespace zinc_rt::nfc_tables
