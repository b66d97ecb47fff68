#include "base/near_name.h"

#include <gtest/gtest.h>

#include <vector>

namespace zinc_rt {
namespace {

TEST(NearName, IsTheOneWithTheFewestEdits) {
  const std::vector<std::string> names{"run", "chat", "serve", "models", "--temperature", "--top-k", "--top-p"};
  EXPECT_EQ(near_name("rnu", names), "run");
  EXPECT_EQ(near_name("CHAT", names), "chat");
  EXPECT_EQ(near_name("modles", names), "models");
  EXPECT_EQ(near_name("--temprature", names), "--temperature");
  EXPECT_EQ(near_name("--topk", names), "--top-k");
  EXPECT_EQ(did_you_mean("sevre", names), "; did you mean serve?");
}

TEST(NearName, IsEmptyWhereNoneIsNear) {
  const std::vector<std::string> names{"run", "chat", std::string(300, 'x')};
  for (const std::string given : {"", "x", "rx", "fly", "serve", "----------"}) EXPECT_EQ(near_name(given, names), "");
  EXPECT_EQ(near_name(std::string(300, 'x'), names), "");
  EXPECT_EQ(did_you_mean("fly", names), "");
  EXPECT_EQ(near_name("run", {}), "");
}

}  // namespace
}  // namespace zinc_rt
