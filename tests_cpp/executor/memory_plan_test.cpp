// The totals of a memory plan.
#include "executor/memory_plan.h"

#include <gtest/gtest.h>

namespace zinc_rt {
namespace {

TEST(MemoryPlan, Totals) {
  MemoryPlan plan;
  plan.regions = {{"a", Heap::kDeviceLocal, 100, false, ""},
                  {"b", Heap::kBar, 20, false, ""},
                  {"c", Heap::kHostVisible, 7, false, ""},
                  {"w", Heap::kHostVisible, 1000, true, ""}};
  EXPECT_EQ(plan.allocated_bytes(), 127u);
  EXPECT_EQ(plan.mapped_bytes(), 1000u);
  EXPECT_EQ(plan.bytes(Heap::kDeviceLocal), 100u);
  EXPECT_EQ(plan.bytes(Heap::kBar), 20u);
  EXPECT_EQ(plan.bytes(Heap::kHostVisible), 7u);
  EXPECT_EQ(plan.find("b")->bytes, 20u);
  EXPECT_EQ(plan.find("z"), nullptr);
}

}  // namespace
}  // namespace zinc_rt
