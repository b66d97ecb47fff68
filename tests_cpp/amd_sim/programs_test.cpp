// What a device leaves undefined, on purpose: each fault is named. And the same programs put right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "amd_sim/bench.h"

namespace amd_sim {
namespace {

using ::testing::HasSubstr;

// data[lane] += 1, of every lane of a workgroup.
std::vector<std::string> increment() {
  return {"v_lshlrev_b32_e32 v1, 2, v0", "global_load_b32 v2, v1, s[0:1]",  "s_wait_loadcnt 0x0 #0",
          "v_add_nc_u32_e32 v2, 1, v2",  "global_store_b32 v1, v2, s[0:1]", "s_endpgm"};
}

TEST(AmdSimPrograms, Increment) {
  Program program(increment());
  program.dispatch.user[1] = 0;
  EXPECT_EQ(program.run(), "");
  for (std::size_t lane = 0; lane < kLanes; ++lane) EXPECT_EQ(program.word(lane), 1u);
}

TEST(AmdSimPrograms, AMissingWait) {
  auto lines = increment();
  lines.erase(lines.begin() + 2);
  EXPECT_THAT(Program(lines).run(), HasSubstr("missing wait: v2 is still being loaded"));
}

// Loads come in order: the halves of a register may be under way at once.
TEST(AmdSimPrograms, TwoLoadsOfOneRegister) {
  Program program({"v_mov_b32_e32 v1, 0", "global_load_d16_u8 v2, v1, s[0:1]",
                   "global_load_d16_hi_u8 v2, v1, s[0:1] offset:1", "s_wait_loadcnt 0x0 #0",
                   "global_store_b32 v1, v2, s[0:1]", "s_endpgm"});
  program.dispatch.user[1] = 0;
  program.data[0] = 7, program.data[1] = 9;
  EXPECT_EQ(program.run(), "");
  EXPECT_EQ(program.word(0) & 0xFF00FF, 0x90007u);
}

TEST(AmdSimPrograms, AMissingWaitForAScalar) {
  const std::vector<std::string> lines = {"s_load_b32 s4, s[0:1], 0x0", "s_wait_kmcnt 0x0 #0",
                                          "s_add_co_u32 s5, s4, s4", "s_endpgm"};
  EXPECT_EQ(Program(lines).run(), "");
  EXPECT_THAT(Program({lines[0], lines[2], lines[3]}).run(), HasSubstr("missing wait: s4 is still being loaded"));
}

TEST(AmdSimPrograms, ARegisterTooMany) {
  EXPECT_THAT(Program({"v_mov_b32_e32 v32, 0", "s_endpgm"}).run(), HasSubstr("v32 is beyond the 32 VGPRs"));
  EXPECT_EQ(Program({"v_mov_b32_e32 v31, 0", "s_endpgm"}).run(), "");
}

TEST(AmdSimPrograms, AnAddressOutsideTheMemory) {
  EXPECT_THAT(Program({"v_mov_b32_e32 v1, 0x1000", "global_load_b32 v2, v1, s[0:1]", "s_endpgm"}).run(),
              HasSubstr("is in no region, near data"));
  EXPECT_THAT(Program({"v_mov_b32_e32 v1, 0xffff0000", "s_endpgm"}).run(), "");
}

// Workgroups that all write the first word.
TEST(AmdSimPrograms, ARaceOfWorkgroups) {
  Program program({"v_mov_b32_e32 v1, 0", "global_store_b32 v1, v0, s[0:1]", "s_endpgm"});
  program.machine.memory.races = true;
  EXPECT_THAT(program.run(2), HasSubstr("race: workgroup 1 writes 0x20000 that workgroup 0 wrote"));
  Program alone({"v_mov_b32_e32 v1, 0", "global_store_b32 v1, v0, s[0:1]", "s_endpgm"});
  alone.machine.memory.races = true;
  EXPECT_EQ(alone.run(1), "");
}

// Two waves: the second reads what the first has written to LDS.
TEST(AmdSimPrograms, ARaceInLds) {
  const std::vector<std::string> lines = {"v_lshlrev_b32_e32 v1, 2, v0",
                                          "v_xor_b32_e32 v3, 0x80, v1",
                                          "ds_store_b32 v1, v0",
                                          "s_wait_dscnt 0x0 #0",
                                          "s_barrier_signal -1",
                                          "s_barrier_wait 0xffff",
                                          "ds_load_b32 v2, v3",
                                          "s_wait_dscnt 0x0 #0",
                                          "global_store_b32 v1, v2, s[0:1]",
                                          "s_endpgm"};
  Program right(lines);
  EXPECT_EQ(right.run(1, 64), "");
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(right.word(i), i ^ 32);
  auto without = lines;
  without.erase(without.begin() + 4, without.begin() + 6);
  EXPECT_THAT(Program(without).run(1, 64), HasSubstr("LDS race: wave 1"));
}

TEST(AmdSimPrograms, ABarrierThatSomeNeverReach) {
  // The first wave (s_cbranch by its lanes) ends, the second waits twice.
  EXPECT_THAT(Program({"s_barrier_wait 0xffff", "s_endpgm"}).run(), HasSubstr("a barrier that it did not signal"));
  EXPECT_THAT(Program({"s_barrier_signal -1", "s_barrier_signal -1", "s_endpgm"}).run(1, 64),
              HasSubstr("signals the barrier twice"));
}

TEST(AmdSimPrograms, AddressesOfLdsWrap) {
  Program program({"v_mov_b32_e32 v1, 8", "ds_store_b32 v1, v1", "v_mov_b32_e32 v2, -4", "ds_load_b32 v3, v2 offset:12",
                   "s_wait_dscnt 0x0 #0", "v_mov_b32_e32 v4, 0", "global_store_b32 v4, v3, s[0:1]", "s_endpgm"});
  program.dispatch.user[1] = 0;
  EXPECT_EQ(program.run(), "");
  EXPECT_EQ(program.word(0), 8u);
}

TEST(AmdSimPrograms, TwoWordsOfLdsMayBeLoadedOverTheirAddress) {
  Program program({"v_mov_b32_e32 v1, 8", "v_mov_b32_e32 v2, 0x64", "v_mov_b32_e32 v3, 7",
                   "ds_store_2addr_b32 v1, v2, v3 offset1:1", "ds_load_2addr_b32 v[1:2], v1 offset1:1",
                   "s_wait_dscnt 0x0 #0", "v_mov_b32_e32 v4, 0", "global_store_b32 v4, v1, s[0:1]",
                   "global_store_b32 v4, v2, s[0:1] offset:4", "s_endpgm"});
  program.dispatch.user[1] = 0;
  EXPECT_EQ(program.run(), "");
  EXPECT_EQ(program.word(0), 100u);
  EXPECT_EQ(program.word(1), 7u);
}

TEST(AmdSimPrograms, LdsBeyondTheDispatch) {
  EXPECT_THAT(Program({"v_mov_b32_e32 v1, 0x200", "ds_load_b32 v2, v1", "s_endpgm"}).run(),
              HasSubstr("the dispatch has 512 bytes of LDS"));
}

// On gfx12 a scalar register that a vector instruction has read is written, and read again too early.
TEST(AmdSimPrograms, AHazardOfScalars) {
  const std::vector<std::string> lines = {"v_mov_b32_e32 v1, s4", "s_mov_b32 s4, 0", "s_wait_alu 0xfffe #0xfffe",
                                          "v_mov_b32_e32 v2, s4", "s_endpgm"};
  EXPECT_EQ(Program(lines).run(), "");
  EXPECT_THAT(Program({lines[0], lines[1], lines[3], lines[4]}).run(), HasSubstr("gfx12 hazard: s4 was written by"));
}

TEST(AmdSimPrograms, AWaveThatNeverEnds) {
  Program program({"s_branch 65535 #0xffff"});
  program.machine.limit = 1000;
  EXPECT_THAT(program.run(), HasSubstr("hang: a wave ran 1000 instructions"));
}

TEST(AmdSimPrograms, CodeInMemoryThatIsNotExecutable) {
  Program program({"s_endpgm"});
  program.dispatch.pgm = Program::kData;
  EXPECT_THAT(program.run(), HasSubstr("in memory without EXECUTABLE"));
}

// Of many workgroups some run, and counts are as of all. All of them load the same line, and each stores a word of a line
// of its own.
TEST(AmdSimPrograms, CountsOfSomeWorkgroupsAreScaled) {
  const std::vector<std::string> lines = {"v_mov_b32_e32 v1, 0",
                                          "global_load_b32 v2, v1, s[0:1]",
                                          "s_wait_loadcnt 0x0 #0",
                                          "v_mov_b32_e32 v3, ttmp9",
                                          "s_nop 0",
                                          "v_lshlrev_b32_e32 v3, 7, v3",
                                          "s_nop 0",
                                          "global_store_b32 v3, v2, s[0:1] offset:128",
                                          "s_endpgm"};
  const auto counts_of = [&](std::uint32_t most) {
    Program program(lines);
    program.dispatch.user[1] = 0;
    program.machine.lines = program.machine.profile = true;
    program.machine.most_groups = most;
    EXPECT_EQ(program.run(24), "");
    return program.machine.counts;
  };
  const Counts all = counts_of(0), some = counts_of(8);
  EXPECT_EQ(all.groups, 24u);
  EXPECT_EQ(all.own_lines, 24u);
  EXPECT_EQ(all.shared_lines, 1u);
  EXPECT_EQ(some.groups, all.groups);
  EXPECT_EQ(some.waves, all.waves);
  EXPECT_EQ(some.total(), all.total());
  EXPECT_EQ(some.names, all.names);
  EXPECT_EQ(some.load_bytes, all.load_bytes);
  EXPECT_EQ(some.own_lines, all.own_lines);
  EXPECT_EQ(some.shared_lines, all.shared_lines);
}

}  // namespace
}  // namespace amd_sim
