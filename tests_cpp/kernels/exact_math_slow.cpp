// Every float of every function's domain.
#include <gtest/gtest.h>

#include "exact_functions.h"

namespace zinc_rt::kernel_test {
namespace {

class EveryFloat : public ::testing::TestWithParam<int> {};

TEST_P(EveryFloat, WithinTwoUlp) {
  const Function& f = kFunctions[GetParam()];
  float worst = 0;
  const double distance = sweep(f, 0, 1, worst);
  EXPECT_LE(distance, 2.0) << f.name << " at " << worst;
  RecordProperty("ulp", std::to_string(distance));
}
INSTANTIATE_TEST_SUITE_P(Functions, EveryFloat, ::testing::Range(0, int(std::size(kFunctions))),
                         [](const auto& info) { return std::string(kFunctions[info.param].name); });

}  // namespace
}  // namespace zinc_rt::kernel_test
