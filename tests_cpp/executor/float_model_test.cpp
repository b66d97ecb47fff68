// A model of float matrices, which are computed as fixed16 (docs/arithmetic.md, rule 4): what is made of each matrix
// and where it lies, that no setting changes a bit, and that the logits are near those of floats.
#include "model_fixture.h"
#include "ring/cpu/kernel_sets.h"
#include "tests_cpp/model/tiny_float.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

std::string float_model(bool is_tied = false) {
  return write_tiny_float("executor_float", {.is_tied = is_tied});
}
ExecutorOptions with_floats() {
  auto options = small_options();
  options.activations = Activations::kF32;
  return options;
}
std::string computed_as(const Executor& executor, const char* tensor) {
  return std::string(to_string(executor.weights().find(tensor)->dtype));
}

TEST(FloatModel, MatricesOfExactCodesAreFixed16) {
  const auto path = float_model();
  const auto executor = open(path);
  ASSERT_TRUE(executor);
  for (const char* tensor : {"token_embd.weight", "output.weight", "blk.0.attn_k.weight", "blk.0.ffn_up.weight"})
    EXPECT_EQ(computed_as(*executor, tensor), "fixed16") << tensor;
  EXPECT_EQ(computed_as(*executor, "blk.1.ffn_up.weight"), "f16") << "too many magnitudes a group";
  EXPECT_EQ(computed_as(*executor, "output_norm.weight"), "f32");
  const auto floats = open(path, with_floats());
  ASSERT_TRUE(floats);
  EXPECT_EQ(computed_as(*floats, "blk.0.attn_k.weight"), "bf16");
  EXPECT_EQ(computed_as(*floats, "blk.0.ffn_up.weight"), "f16");
}

TEST(FloatModel, ArithmeticFastLeavesFloats) {
  auto options = small_options();
  options.arithmetic = Arithmetic::kFast;
  const auto executor = open(float_model(), options);
  ASSERT_TRUE(executor);
  EXPECT_EQ(computed_as(*executor, "blk.0.attn_k.weight"),
            executor->info().arithmetic == Arithmetic::kFast ? "bf16" : "fixed16");
}

TEST(FloatModel, WhatIsConvertedIsAllocatedAndTheRestIsMapped) {
  auto options = small_options();
  options.repack = false;
  const auto path = float_model();
  const auto mapped = open(path, options);
  options.mmap = false;
  const auto copied = open(path, options);
  ASSERT_TRUE(mapped && copied);
  std::uint64_t converted = 0, in_file = 0;
  for (const Tensor& tensor : mapped->weights().all()) {
    const bool is_fixed = tensor.dtype == DType::kFixed16;
    (is_fixed ? converted : in_file) += tensor.computed_bytes();
  }
  std::uint64_t allocated = 0, kept = 0;
  for (const MemoryRegion& region : mapped->plan().regions) {
    if (!region.name.starts_with("weights.")) continue;
    EXPECT_EQ(region.mapped, !region.name.ends_with(".converted")) << region.name;
    (region.mapped ? kept : allocated) += region.bytes;
  }
  // Regions begin tensors at whole lines of a cache.
  EXPECT_GE(allocated, converted);
  EXPECT_LE(allocated, converted + 64 * mapped->weights().all().size());
  EXPECT_GE(kept, in_file);
  EXPECT_LE(kept, in_file + 64 * mapped->weights().all().size());
  EXPECT_EQ(mapped->allocated_bytes(), mapped->plan().allocated_bytes());
  // Of one class a layer may be converted and another not.
  const std::string up = weight_class("model.ffn.up_weight[0]");
  EXPECT_NE(mapped->plan().find("weights." + up + ".converted"), nullptr);
  EXPECT_NE(mapped->plan().find("weights." + up), nullptr);
  EXPECT_EQ(copied->plan().mapped_bytes(), 0u);
  EXPECT_EQ(copied->allocated_bytes(), copied->plan().allocated_bytes());
  EXPECT_EQ(copied->plan().find("weights." + up + ".converted"), nullptr);
}

TEST(FloatModel, NoSettingChangesABit) {
  const auto ids = prompt(70);
  for (const bool is_tied : {false, true}) {
    const auto path = float_model(is_tied);
    auto options = small_options();
    options.cpu_kernels = "ref", options.repack = false, options.fusion = "0";
    const auto wanted = run_prompt(*open(path, options), ids, 70);
    ASSERT_EQ(wanted.tokens.size(), 70u);
    options.fusion = "1";
    for (const auto* kernels :
         {"ref", "avx2", "avx_vnni", "avx512_vnni", "amx_int8", "neon", "neon_dotprod", "neon_i8mm"}) {
      if (!ring::find_kernel_set(kernels)) continue;
      options.cpu_kernels = kernels;
      for (const auto& [repack, mmap] : {std::pair{true, true}, {false, true}, {false, false}}) {
        options.repack = repack, options.mmap = mmap, options.threads = mmap ? 2 : 3;
        const auto executor = open(path, options);
        ASSERT_TRUE(executor);
        for (const std::size_t chunk : {1, 7, 70})
          EXPECT_EQ(run_prompt(*executor, ids, chunk), wanted)
              << kernels << ", repack " << repack << ", mmap " << mmap << ", chunks of " << chunk;
      }
    }
  }
}

// With a cache of floats: cells of f16 round, now and then to another neighbour, and add as much again.
TEST(FloatModel, LogitsAreNearThoseOfFloats) {
  const auto path = float_model();
  const auto ids = prompt(70);
  auto fixed = small_options(), floats = with_floats();
  fixed.kv_type = floats.kv_type = find_kv_type("f32");
  const auto got = run_prompt(*open(path, fixed), ids, 70), wanted = run_prompt(*open(path, floats), ids, 70);
  ASSERT_EQ(got.logits.size(), wanted.logits.size());
  double square = 0, largest = 0;
  for (std::size_t i = 0; i < got.logits.size(); ++i) {
    square += double{wanted.logits[i]} * wanted.logits[i];
    largest = std::max(largest, std::abs(double{got.logits[i]} - wanted.logits[i]));
  }
  EXPECT_GT(square / static_cast<double>(got.logits.size()), 0.1) << "logits of the usual size";
  EXPECT_LT(largest, 1e-3);
  EXPECT_GT(largest, 0.0) << "no other arithmetic was used";
}

class FloatModelOnTiers : public ::testing::TestWithParam<const ring::Tier*> {};

TEST_P(FloatModelOnTiers, HasTheBitsOfTCpu) {
  for (const bool is_tied : {false, true}) {
    const auto path = float_model(is_tied);
    auto options = small_options();
    const auto cpu = open(path, options);
    options.tier = GetParam()->name;
    const auto other = open(path, options);
    ASSERT_TRUE(cpu && other);
    const auto ids = prompt(6);
    for (const std::size_t chunk : {1, 5}) EXPECT_EQ(run_prompt(*other, ids, chunk), run_prompt(*cpu, ids, chunk));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, FloatModelOnTiers, ::testing::ValuesIn(other_tiers()),
                         [](const auto& info) { return info.param->name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FloatModelOnTiers);

}  // namespace
}  // namespace zinc_rt
