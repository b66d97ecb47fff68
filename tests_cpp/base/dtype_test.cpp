#include "base/dtype.h"

#include <gtest/gtest.h>

namespace zinc_rt {

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < static_cast<int>(DType::kCount); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
  }
  EXPECT_EQ(parse_dtype("q9_9"), std::nullopt);
}

TEST(DType, RowBytes) {
  EXPECT_EQ(row_bytes(DType::kQ4_K, 512), 288u);
  EXPECT_EQ(row_bytes(DType::kF16, 3), 6u);
}

}  // namespace zinc_rt
