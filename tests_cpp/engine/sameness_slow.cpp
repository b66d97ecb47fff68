// Nobody's bits depend on who else is there, or on what is guessed: 1,024 random schedules of the eleven cases of
// schedule.h, few of them of LongRoPE because its texts are long.
#include "schedule.h"

namespace zinc_rt {
namespace {

class SamenessAtLength : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(SamenessAtLength, OfRequestsAloneAndAmongOthers) {
  const bool is_long = GetParam().model.contains("longrope");
  play_schedules(GetParam(), 50, 1000, is_long ? 24 : 100);
}

INSTANTIATE_TEST_SUITE_P(Families, SamenessAtLength, ::testing::ValuesIn(kFamilies), [](const auto& info) {
  auto name = info.param.model + "_kv_" + info.param.kv_dtype;
  if (info.param.n_devices > 1) name += "_devices_" + std::to_string(info.param.n_devices);
  if (!info.param.draft.empty()) name += "_draft_" + info.param.draft;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace zinc_rt
