// The grids of the IQ1, IQ2 and IQ3 formats. A block of such a format stores indices of points, and a point gives the
// values of 8 or 4 neighbouring weights, without their signs (IQ1: with signs).
// Thread rule: constants.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zinc_rt::cpu {

template <std::size_t kPoints, std::size_t kWidth>
struct Grid {
  std::int8_t points[kPoints][kWidth];
};

extern const Grid<256, 8> kIq2XxsGrid;  // values 8, 25 and 43 in the three grids of IQ2
extern const Grid<512, 8> kIq2XsGrid;
extern const Grid<1024, 8> kIq2SGrid;
extern const Grid<256, 4> kIq3XxsGrid;  // values 4, 12, 20, ... 52 and 62
extern const Grid<512, 4> kIq3SGrid;    // odd values from 1 to 15
extern const Grid<2048, 8> kIq1Grid;    // values -1, 0 and 1; IQ1_S and IQ1_M share it

}  // namespace zinc_rt::cpu
