// What the files of a machine say of processors and quotas, from trees of such files.
#include "base/processors.h"
#include "base/platform/processor_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

class ProcessorsTest : public ::testing::Test {
 protected:
  ~ProcessorsTest() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  Processors find() const { return find_processors(root_); }
  std::string root_ =
      (std::filesystem::path(::testing::TempDir()) /
       ("zrt_processors_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name())))
          .string();
};

TEST_F(ProcessorsTest, NothingIsKnown) {
  const auto processors = find();
  EXPECT_GE(processors.ids.size(), 1u);
  EXPECT_EQ(processors.n_cores, static_cast<int>(processors.ids.size()));
  EXPECT_FALSE(processors.quota);
  EXPECT_EQ(processors.n_threads(), processors.n_cores);
}

TEST_F(ProcessorsTest, SiblingsAreOneCore) {
  for (const int id : find().ids)
    write("/sys/devices/system/cpu/cpu" + std::to_string(id) + "/topology/thread_siblings_list", "0-4095");
  EXPECT_EQ(find().n_cores, 1);
}

TEST_F(ProcessorsTest, QuotaOfVersionTwo) {
  write("/proc/self/cgroup", "0::/a/b");
  write("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  EXPECT_FALSE(find().quota);
  write("/sys/fs/cgroup/a/cpu.max", "150000 100000");
  write("/sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_EQ(find().quota, 1.5);  // the least of those above
  write("/sys/fs/cgroup/a/b/cpu.max", "25000 50000");
  EXPECT_EQ(find().quota, 0.5);
  EXPECT_EQ(find().n_threads(), 1);
}

// A container that sees the host's path, but of the mount only its own folder.
TEST_F(ProcessorsTest, QuotaOfAContainer) {
  write("/proc/self/cgroup", "0::/machine/box");
  write("/sys/fs/cgroup/cpu.max", "50000 100000");
  EXPECT_EQ(find().quota, 0.5);
}

TEST_F(ProcessorsTest, QuotaOfVersionOne) {
  write("/proc/self/cgroup", "9:cpuset:/\n4:cpu,cpuacct:/box\n0::/");
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(find().quota);
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "120000");
  EXPECT_EQ(find().quota, 1.2);
}

TEST_F(ProcessorsTest, DamagedFilesSayNothing) {
  write("/proc/self/cgroup", "0\n0:\n:::\n0::/a\n1:cpu:b");
  for (const char* text : {"", "x y", "100000", "100000 0", "-5 100000", "1e 5", "nan 1", "1 inf"}) {
    write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_FALSE(find().quota) << text;
  }
}

TEST(Processors, BoundsAreCoresAndQuota) {
  const Processors processors{{0, 1, 2, 3, 4, 5, 6, 7}, 4, {}};
  EXPECT_EQ(processors.n_usable(), 8);
  EXPECT_EQ(processors.n_threads(), 4);
  auto limited = processors;
  limited.quota = 2.9;
  EXPECT_EQ(limited.n_usable(), 2);
  EXPECT_EQ(limited.n_threads(), 2);
  limited.quota = 0.1;
  EXPECT_EQ(limited.n_threads(), 1);
  limited.quota = 6;
  EXPECT_EQ(limited.n_usable(), 6);
  EXPECT_EQ(limited.n_threads(), 4);
  EXPECT_EQ(limited.explain(), "4 threads: 8 usable processors, 4 cores, quota of 6 processors");
  EXPECT_THAT(processors.explain(), HasSubstr("no quota"));
}

TEST(Processors, FollowTheAffinityOfTheThread) {
  const auto all = find_processors().ids;
  std::thread([&] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(static_cast<std::size_t>(all.back()), &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof(mask), &mask), 0);
    EXPECT_EQ(find_processors().ids, std::vector{all.back()});
    EXPECT_EQ(find_processors().n_threads(), 1);
  }).join();
}

TEST(Survives, TellsWhatAProcessOfItsOwnDid) {
  EXPECT_TRUE(survives([] { return true; }));
  EXPECT_FALSE(survives([] { return false; }));
  EXPECT_FALSE(survives([]() -> bool { __builtin_trap(); }));
}

}  // namespace
}  // namespace zinc_rt
