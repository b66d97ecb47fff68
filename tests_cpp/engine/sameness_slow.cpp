// Nobody's bits depend on who else is there: 400 random schedules over four families.
#include "schedule.h"

namespace zinc_rt {
namespace {

class Sameness : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(Sameness, OfRequestsAloneAndAmongOthers) {
  ZRT_NEED_FIXTURES();
  play_schedules(GetParam(), 50, 1000, 100);
}

INSTANTIATE_TEST_SUITE_P(Families, Sameness, ::testing::ValuesIn(kFamilies), [](const auto& info) {
  auto name = info.param.model;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace zinc_rt
