// Nobody's bits depend on who else is there: some of the random schedules; sameness_slow.cpp plays them all.
#include "schedule.h"

namespace zinc_rt {
namespace {

// A sanitizer takes ten times as long, so it plays fewer. So do prompts that are three times as long.
#ifdef ZRT_SANITIZED
constexpr unsigned kSchedules = 8;
#else
constexpr unsigned kSchedules = 18;
#endif
constexpr unsigned kLongSchedules = 8;

class Sameness : public ::testing::TestWithParam<FamilyCase> {};

TEST_P(Sameness, OfRequestsAloneAndAmongOthers) {
  play_schedules(GetParam(), 16, 1, GetParam().shortest > 200 ? kLongSchedules : kSchedules);
}

INSTANTIATE_TEST_SUITE_P(Families, Sameness, ::testing::ValuesIn(kFamilies), [](const auto& info) {
  auto name = info.param.model + "_kv_" + info.param.kv_dtype;
  if (info.param.n_devices > 1) name += "_devices_" + std::to_string(info.param.n_devices);
  if (!info.param.draft.empty()) name += "_draft_" + info.param.draft;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace zinc_rt
