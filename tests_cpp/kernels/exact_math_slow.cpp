// A fine sweep of every function's domain: each 13th float. A step of 1 takes all of them, in about a quarter of an
// hour.
#include <gtest/gtest.h>

#include "exact_functions.h"

namespace zinc_rt::kernel_test {
namespace {

class FineSweep : public ::testing::TestWithParam<int> {};

TEST_P(FineSweep, WithinTwoUlp) {
  const Function& f = kFunctions[GetParam()];
  float worst = 0;
  const double distance = sweep(f, 0, 13, worst);
  EXPECT_LE(distance, 2.0) << f.name << " at " << worst;
  RecordProperty("ulp", std::to_string(distance));
}
INSTANTIATE_TEST_SUITE_P(Functions, FineSweep, ::testing::Range(0, int(std::size(kFunctions))),
                         [](const auto& info) { return std::string(kFunctions[info.param].name); });

}  // namespace
}  // namespace zinc_rt::kernel_test
