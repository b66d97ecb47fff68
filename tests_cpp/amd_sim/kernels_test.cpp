// The kernels of tier t1 as they lie in the program: what their instructions are, and what products cost. What a product
// makes is compared elsewhere (tests_cpp/executor); here its operands are bytes of any kind.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "amd_sim/machine.h"
#include "base/dtype.h"
#include "kernels/rdna/product_args.h"
#include "ring/amd/code_object.h"
#include "ring/amd/images.h"
#include "ring/amd/plan.h"
#include "ring/amd/pm4.h"

namespace amd_sim {
namespace {

using namespace zinc_rt;
using namespace zinc_rt::ring;

constexpr std::uint64_t kCode = 0x100000000, kArguments = 0x200000000, kData = 0x300000000;

// Every kernel for a target, from its first instruction to its end: none that the emulator does not know, and of those
// whose result is not rounded rightly only what clang makes of a division of integers.
void expect_no_approximate_instruction(kernel::Target target) {
  std::size_t n_kernels = 0;
  Disassembler disassembler{std::string(kernel::to_string(target))};
  for (const CodeImage& image : amd_images()) {
    if (image.target != target) continue;
    const auto object = read_code_object(image.code, image.name);
    ASSERT_TRUE(object) << object.error().message;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(object->image.data());
    for (const auto& kernel : object->kernels) {
      ++n_kernels;
      SCOPED_TRACE(kernel.name);
      EXPECT_LE(kernel.n_vgprs(), 256u);
      for (std::uint64_t at = kernel.entry; at < object->image.size();) {
        const auto inst = disassembler.at(bytes + at, object->image.size() - at, at);
        if (inst->name == "s_code_end") break;  // behind the last instruction
        EXPECT_TRUE(!inst->approximate || inst->name == "v_rcp_iflag_f32") << inst->full;
        at += inst->size;
      }
    }
  }
  EXPECT_GT(n_kernels, 100u);
}
TEST(AmdSimKernels, HaveNoApproximateInstructionButOfIntegerDivision) {
  expect_no_approximate_instruction(kernel::Target::kGfx1201);
}
TEST(AmdSimKernels, HaveNoneOnGfx1100) {
  expect_no_approximate_instruction(kernel::Target::kGfx1100);
}
TEST(AmdSimKernels, HaveNoneOnGfx1151) {
  expect_no_approximate_instruction(kernel::Target::kGfx1151);
}

// A product of n columns on the emulator, of gfx1201.
struct Cost {
  double instructions, valu;  // a byte of weights
  double wmma_share;          // of the cycles in which the vector unit issues
  double bytes, lines;        // that are loaded, and those of the lines that loads touch, by the bytes of weights
  std::uint32_t vgprs;
};
Cost cost_of(DType dtype, std::uint32_t m, std::uint32_t k, std::uint32_t n) {
  std::vector<AmdLaunch> launches;
  AmdPlanner planner(launches, 0);
  const std::uint64_t w_bytes = m * row_bytes(dtype, k), x_bytes = n * row_bytes(act_dtype(dtype), k);
  const auto aligned = [](std::uint64_t bytes) { return (bytes + 255) / 256 * 256; };
  const std::uint64_t x_at = aligned(w_bytes), y_at = x_at + aligned(x_bytes), all = y_at + std::uint64_t{m} * n * 4;
  plan_products(planner, n, {kData + x_at, act_dtype(dtype), k, {{kData, dtype, m, 0, kData + y_at}}});
  EXPECT_EQ(launches.size(), 1u);
  const AmdLaunch& launch = launches.front();
  for (const CodeImage& image : amd_images()) {
    if (image.target != kernel::Target::kGfx1201) continue;
    auto object = read_code_object(image.code, image.name);
    if (!object) continue;
    for (const auto& kernel : object->kernels) {
      if (kernel.name != launch.function) continue;
      Machine machine;
      machine.lines = true;
      std::vector<std::uint8_t> data(all), arguments(sizeof(launch.args));
      std::mt19937 random(1);
      for (auto& byte : data) byte = static_cast<std::uint8_t>(random());
      std::memcpy(arguments.data(), &launch.args, sizeof(launch.args));
      machine.memory.add({"code", kCode, object->image.size(), reinterpret_cast<std::uint8_t*>(object->image.data())});
      machine.memory.add({"arguments", kArguments, arguments.size(), arguments.data()});
      machine.memory.add({"data", kData, data.size(), data.data()});
      Dispatch dispatch;
      dispatch.pgm = kCode + kernel.entry;
      dispatch.rsrc1 = kernel.rsrc1, dispatch.rsrc2 = kernel.rsrc2 | pm4::lds_field(kernel.lds_bytes);
      dispatch.rsrc3 = kernel.rsrc3;
      dispatch.user[0] = static_cast<std::uint32_t>(kArguments);
      dispatch.user[1] = static_cast<std::uint32_t>(kArguments >> 32);
      dispatch.threads[0] = launch.threads, dispatch.threads[1] = dispatch.threads[2] = 1;
      std::ranges::copy(launch.groups, dispatch.groups);
      machine.run({&dispatch, 1}, false);
      const Counts& c = machine.counts;
      const auto weights = static_cast<double>(w_bytes), valu = static_cast<double>(c.inst[kValu] + c.inst[kTrans]),
                 wmma = static_cast<double>(c.wmma_cycles);
      return {static_cast<double>(c.total()) / weights,
              valu / weights,
              wmma / (wmma + valu),
              static_cast<double>(c.load_bytes) / weights,
              static_cast<double>(c.lines) * 128 / weights,
              kernel.n_vgprs()};
    }
  }
  ADD_FAILURE() << "no image has " << launch.function;
  return {};
}

// Bounds of what is reached. One column: of a budget of 0.46 vector instructions a byte with which memory is as slow.
TEST(AmdSimKernels, ProductsCostSoMuch) {
  struct Row {
    DType dtype;
    std::uint32_t m, k, n;
    double most_valu;
    double least_wmma_share = 0;
  };
  constexpr Row kRows[] = {
      {DType::kQ4_K, 128, 4096, 1, 0.065},       {DType::kQ6_K, 128, 4096, 1, 0.08},
      {DType::kQ4_0, 128, 4096, 1, 0.09},        {DType::kQ8_0, 128, 4096, 1, 0.025},
      {DType::kF16, 128, 4096, 1, 0.035},        {DType::kFixed16, 128, 4096, 1, 0.025},
      {DType::kQ4_K, 128, 4096, 4, 0.17},        {DType::kQ4_K, 128, 4096, 16, 0.3, 0.2},
      {DType::kQ4_K, 128, 4096, 64, 0.3, 0.45},  {DType::kQ6_K, 128, 4096, 64, 0.35, 0.3},
      {DType::kQ8_0, 128, 4096, 64, 0.23, 0.33}, {DType::kFixed16, 128, 4096, 64, 0.1, 0.7},
  };
  std::printf("%-8s %4s %12s %8s %8s %8s %8s %6s\n", "weights", "n", "instructions", "VALU", "WMMA", "bytes", "lines",
              "VGPRs");
  for (const Row& row : kRows) {
    const Cost cost = cost_of(row.dtype, row.m, row.k, row.n);
    std::printf("%-8s %4u %12.3f %8.3f %8.2f %8.2f %8.2f %6u\n", std::string(to_string(row.dtype)).c_str(), row.n,
                cost.instructions, cost.valu, cost.wmma_share, cost.bytes, cost.lines, cost.vgprs);
    EXPECT_LE(cost.valu, row.most_valu) << to_string(row.dtype) << " by " << row.n;
    EXPECT_GE(cost.wmma_share, row.least_wmma_share) << to_string(row.dtype) << " by " << row.n;
  }
}

}  // namespace
}  // namespace amd_sim
