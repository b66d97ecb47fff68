// A GPU tier of this file's own, which shows what a new one needs beside cpp/ring/gpu: arguments and launches, a plan for
// each op, its joins, and kernels. The device is the host, and the kernels are functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ring/gpu/fit.h"
#include "ring/gpu/op_table.h"
#include "ring/gpu/plan.h"
#include "ring/gpu/products.h"
#include "ring/host_memory.h"

namespace zinc_rt::ring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Floats = float*;
using TinyCall = gpu::Call<Floats>;

// Launches. A product takes one matrix; sum: null, or rows that y is added to.
struct TinyArgs {
  Floats x = nullptr, w = nullptr, y = nullptr, sum = nullptr;
  std::uint32_t n = 0, k = 0, m = 0;
};
struct TinyLaunch {
  std::string function;
  TinyArgs args;
};
class TinyPlanner {
 public:
  TinyPlanner(std::vector<TinyLaunch>& launches, Floats scratch) : launches_(launches), scratch_at_(scratch) {}
  void launch(std::string function, const TinyArgs& args) { launches_.push_back({std::move(function), args}); }
  Floats scratch(std::uint64_t floats) { return scratch_at_ + scratch_.take(floats * sizeof(float)) / sizeof(float); }
  void end_packets() { scratch_.free_behind(0); }
  std::uint64_t scratch_bytes() const { return scratch_.most(); }

 private:
  std::vector<TinyLaunch>& launches_;
  Floats scratch_at_;
  gpu::Scratch scratch_;
};

// Plans: an op as one launch, GLU as two with memory between them, and two ops as one. GLU's activation is always ReLU.
void plan_product(TinyPlanner& p, const TinyCall& c, Floats sum) {
  const auto products = gpu::linear_products(c);
  const auto& m = products.matrices[0];
  p.launch("product", {products.x, m.w, m.y, sum, c.rows(), products.k, m.rows});
}
void linear(TinyPlanner& p, const TinyCall& c) {
  plan_product(p, c, nullptr);
}
void add(TinyPlanner& p, const TinyCall& c) {
  const auto o = c.operands<operand::Add>();
  p.launch("add", {.x = o.x, .w = o.y, .y = o.z, .n = c.rows(), .k = c.symbols<gpu::op_symbol::Row>().d});
}
void glu(TinyPlanner& p, const TinyCall& c) {
  const auto rows = gpu::glu(c);
  const std::uint32_t f = c.symbols<gpu::op_symbol::Glu>().f;
  const Floats activated = p.scratch(std::uint64_t{c.rows()} * f);
  p.launch("relu", {.x = rows.gate, .y = activated, .n = c.rows(), .k = f});
  p.launch("multiply", {.x = activated, .w = rows.up, .y = rows.y, .n = c.rows(), .k = f});
}
void attend(TinyPlanner& p, const TinyCall&) {
  p.launch("attend", {});
}
std::size_t linear_sum(TinyPlanner& p, std::span<const TinyCall> calls, std::size_t n) {
  if (calls[0].rows() == 1) return 0;  // as if one row were faster by itself
  plan_product(p, calls[0], calls[1].buffers[operand::Add::x]);
  return n;
}

// The tables.
using TinyOp = gpu::Op<TinyPlanner, TinyCall>;
using TinyKernel = gpu::Kernel<TinyOp>;
using TinyJoin = gpu::Join<TinyPlanner, TinyCall>;
std::span<const TinyOp> tiny_ops() {
  using gpu::Keys, gpu::symbols_of;
  static const std::vector<TinyOp> ops{
      {{ir::Op::LINEAR, symbols_of<gpu::op_symbol::Linear>(), {{"n"}}, Keys::kWeights, 0, {{0, 64}}}, linear},
      {{ir::Op::ADD, symbols_of<gpu::op_symbol::Row>(), {{"n"}}, Keys::kNone, 0, {{0, 64, "of wide rows"}}}, add},
      {{ir::Op::GLU, symbols_of<gpu::op_symbol::Glu>(), {{"n"}}}, glu},
      {{ir::Op::FLASH_ATTN, symbols_of<gpu::op_symbol::FlashAttn>(), {{"n"}}, Keys::kKv}, attend}};
  return ops;
}
constexpr TinyJoin kTinyJoins[] = {{"LINEAR y:p; ADD x:h y:p z:h'", linear_sum}};
constexpr DType kTinyCells[] = {DType::kF16, DType::kI16};
constexpr DType kTinyWeights[] = {DType::kF32, DType::kQ4_K};
constexpr gpu::Kernels kTiny{"tiny", kTinyCells, kTinyWeights,
                             [](const gpu::OpRow& row, DType) { return gpu::kernel_name(row.op); }};
constexpr auto kTarget = kernel::Target::kXe2hpg;

// Kernels.
void run(const TinyLaunch& launch) {
  const TinyArgs& a = launch.args;
  const auto each = [&](const auto& value) {
    for (std::uint32_t i = 0; i < a.n * a.k; ++i) a.y[i] = value(i);
  };
  if (launch.function == "add") return each([&](std::uint32_t i) { return a.x[i] + a.w[i]; });
  if (launch.function == "multiply") return each([&](std::uint32_t i) { return a.x[i] * a.w[i]; });
  if (launch.function == "relu") return each([&](std::uint32_t i) { return std::max(a.x[i], 0.0f); });
  ASSERT_EQ(launch.function, "product");
  for (std::uint32_t row = 0; row < a.n; ++row)
    for (std::uint32_t i = 0; i < a.m; ++i) {
      float y = 0;
      for (std::uint32_t j = 0; j < a.k; ++j) y += a.x[row * a.k + j] * a.w[i * a.k + j];
      a.y[row * a.m + i] = y;
      if (a.sum != nullptr) a.sum[row * a.m + i] += y;
    }
}

// Buffers of two rows of two floats, and a batch of packets over them, as lowering makes it.
class TinyTier : public ::testing::Test {
 protected:
  Buffer floats(std::vector<float> values) {
    const Buffer buffer = *memory_.alloc(values.size() * sizeof(float), Heap::kHostVisible);
    std::memcpy(memory_.map(buffer)->data(), values.data(), buffer.bytes);
    return buffer;
  }
  std::vector<float> read(const Buffer& buffer) const {
    const auto* at = static_cast<const float*>(memory_.address({buffer.id, 0, buffer.bytes}));
    return {at, at + buffer.bytes / sizeof(float)};
  }
  // The file of an op, every symbol of which is `number`.
  static kernel::ZrtFile file_of(ir::Op op, std::uint32_t number = 2) {
    const auto table = gpu::make_table(kTiny, tiny_ops(), kTarget);
    auto file = table.find(op, DType::kF32)->file;
    for (const auto& symbol : file.symbols)
      EXPECT_TRUE(file.patch(symbol.name, symbol.name.starts_with("dtype:") ? 0 : number));
    return file;
  }
  static Result<TinyKernel> read_tiny(const kernel::ZrtFile& file) {
    return gpu::read_kernel(kTiny, tiny_ops(), kernel::write_zrt(file), kTarget);
  }
  void packet(ir::Op op, const std::vector<Buffer>& operands) {
    auto kernel = read_tiny(file_of(op));
    ASSERT_TRUE(kernel) << kernel.error().message;
    Packet packet;
    packet.op = op;
    packet.grid[0] = {ir::kTokens, 1};
    packet.first_binding = static_cast<std::uint32_t>(batch_.bindings.size());
    packet.n_bindings = static_cast<std::uint32_t>(operands.size());
    packet.n_inputs = packet.n_bindings - 1;
    packet.first_push = static_cast<std::uint32_t>(batch_.push.size());
    packet.push_bytes = kernel->push_bytes;
    batch_.push.resize(batch_.push.size() + packet.push_bytes);
    for (const Buffer& b : operands) batch_.bindings.push_back({b.id, 0, b.bytes});
    kernels_.push_back(std::move(*kernel));
    packet.kernel.id = static_cast<std::uint32_t>(kernels_.size());
    batch_.packets.push_back(packet);
  }
  Submission all(std::uint32_t n_tokens = 2) const {
    return {&batch_, 0, static_cast<std::uint32_t>(batch_.packets.size()), {n_tokens, 0}};
  }
  Status fits(const Submission& submission) const {
    return gpu::fits("tiny", submission, std::span<const TinyKernel>(kernels_), memory_, std::size(kTinyJoins));
  }
  std::vector<std::string> plan(std::uint32_t n_tokens = 2) {
    const Submission submission = all(n_tokens);
    const auto fit = fits(submission);
    EXPECT_TRUE(fit) << fit.error().message;
    launches_.clear();
    TinyPlanner planner(launches_, scratch_);
    std::vector<TinyCall> calls;
    for (const Packet& p : batch_.packets)
      calls.push_back(
          gpu::call_of<Floats>(batch_, p, kernels_[p.kernel.id - 1], submission.dims,
                               [&](const Binding& binding) { return static_cast<Floats>(memory_.address(binding)); }));
    const auto plan_op = [&](const TinyCall& call) {
      std::ranges::find(tiny_ops(), call.op, &TinyOp::op)->plan(planner, call);
    };
    gpu::plan_packets(planner, batch_, 0, std::span<const TinyCall>(calls), std::span<const TinyJoin>(kTinyJoins),
                      plan_op, [&](std::uint32_t, std::uint32_t) { planner.end_packets(); });
    scratch_bytes_ = planner.scratch_bytes();
    std::vector<std::string> names;
    for (const TinyLaunch& launch : launches_) names.push_back(launch.function);
    return names;
  }
  void run_all() {
    for (const TinyLaunch& launch : launches_) run(launch);
  }

  HostMemory memory_;
  PacketBatch batch_;
  std::vector<TinyKernel> kernels_;
  std::vector<TinyLaunch> launches_;
  float scratch_[256];
  std::uint64_t scratch_bytes_ = 0;
};

TEST_F(TinyTier, PlansAndRunsPackets) {
  const Buffer x = floats({1, 2, 3, 4}), w = floats({1, 0, 1, 1}), y = floats({0, 0, 0, 0}), none{},
               z = floats({-1, 2, -3, 4}), g = floats({0, 0, 0, 0});
  packet(ir::Op::LINEAR, {x, w, none, y});  // 1 3 | 3 7
  packet(ir::Op::ADD, {z, y, z});           // 0 5 | 0 11
  packet(ir::Op::GLU, {y, z, g});
  packet(ir::Op::GLU, {z, y, g});
  EXPECT_THAT(plan(), ElementsAre("product", "add", "relu", "multiply", "relu", "multiply"));
  EXPECT_EQ(scratch_bytes_, 256u) << "each packet has it in its turn";
  run_all();
  EXPECT_THAT(read(g), ElementsAre(0, 15, 0, 77));
}

TEST_F(TinyTier, JoinsPacketsUnlessItsPlanRefuses) {
  const Buffer x = floats({1, 2, 3, 4}), w = floats({1, 0, 1, 1}), y = floats({0, 0, 0, 0}), none{},
               h = floats({10, 20, 30, 40});
  packet(ir::Op::ADD, {x, x, x});
  packet(ir::Op::LINEAR, {x, w, none, y});
  packet(ir::Op::ADD, {h, y, h});
  packet(ir::Op::ADD, {h, h, h});
  batch_.joined.push_back({.pattern = 0, .first = 1, .least = 2, .count = 2});
  EXPECT_THAT(plan(1), ElementsAre("add", "product", "add", "add"));
  EXPECT_THAT(plan(2), ElementsAre("add", "product", "add"));
  run_all();
  EXPECT_THAT(read(h), ElementsAre(2 * 12, 2 * 26, 2 * 36, 2 * 54));
}

TEST_F(TinyTier, WhatDoesNotFitIsRefused) {
  const Buffer x = floats({1, 2, 3, 4});
  packet(ir::Op::ADD, {x, x, x});
  ASSERT_TRUE(fits(all()));
  const auto refused = [&](const auto& damage) {
    const PacketBatch good = batch_;
    damage();
    const auto status = fits(all());
    batch_ = good;
    EXPECT_FALSE(status);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(refused([&] { batch_.packets[0].kernel.id = 7; }), "[tiny] kernel 7 is not loaded, 1 are");
  EXPECT_THAT(refused([&] { batch_.packets[0].n_bindings = 2; }), HasSubstr("has 2 bindings"));
  EXPECT_THAT(refused([&] { batch_.bindings[1].offset = 4; }), HasSubstr("leaves buffer object"));
  EXPECT_EQ(refused([&] { batch_.joined.push_back({1, 0, 1, 1}); }), "[tiny] packets that match pattern 1 of 1");
  EXPECT_THAT(refused([&] { batch_.packets[0].first_binding = 1; }), HasSubstr("bindings 1 + 3 of 3"));
  EXPECT_EQ(gpu::values_fit("tiny", all(), memory_).error().message,
            "[tiny] ADD binds value 4294967295, the batch has 0");
  find_dependencies(batch_);
  EXPECT_TRUE(gpu::values_fit("tiny", all(), memory_));
  EXPECT_FALSE(gpu::part_of(memory_, Buffer{}, 0, 0));
  EXPECT_FALSE(gpu::part_of(memory_, x, 8, 9));
  EXPECT_TRUE(gpu::part_of(memory_, x, 8, 8));
  EXPECT_EQ(gpu::part_of("tiny", memory_, x, 0, WeightMatrix{DType::kF32, 2, 2, {}}).error().message,
            "[tiny] a matrix of 16 bytes, 0 given");
}

TEST(GpuTable, HasAnEntryForEachTypeAndReadsItsFiles) {
  const auto table = gpu::make_table(kTiny, tiny_ops(), kTarget);
  for (const DType type : kTinyWeights) EXPECT_NE(table.find(ir::Op::LINEAR, type), nullptr);
  EXPECT_EQ(table.find(ir::Op::LINEAR, DType::kQ8_0), nullptr);
  EXPECT_NE(table.find(ir::Op::FLASH_ATTN, DType::kI16), nullptr);
  EXPECT_EQ(table.find(ir::Op::FLASH_ATTN, DType::kF32), nullptr);
  EXPECT_NE(table.find(ir::Op::ADD, DType::kF32), nullptr);
  EXPECT_FALSE(table.has(ir::Op::SCALE));
  const auto& file = table.find(ir::Op::LINEAR, DType::kQ4_K)->file;
  std::vector<std::string> names;
  for (const auto& symbol : file.symbols) names.push_back(symbol.name);
  EXPECT_THAT(names, ElementsAre("dim:k", "dim:m", "dtype:w", "dtype:x"));
}

TEST_F(TinyTier, FilesOfOtherKernelsAreRefused) {
  EXPECT_EQ(read_tiny(file_of(ir::Op::LINEAR, 65)).error().message,
            "[tiny] the tier has no kernel for LINEAR with dim:k = 65, at most 64");
  EXPECT_EQ(read_tiny(file_of(ir::Op::ADD, 65)).error().message, "[tiny] the tier has no kernel for ADD of wide rows");
  EXPECT_TRUE(read_tiny(file_of(ir::Op::ADD, 64)));
  auto file = file_of(ir::Op::ADD);
  file.name = "scale";
  EXPECT_EQ(read_tiny(file).error().message, "[tiny] no kernel is named scale");
  file.name = "linear";
  EXPECT_EQ(read_tiny(file).error().code, StatusCode::kCorrupt);
  file = file_of(ir::Op::ADD);
  file.target = kernel::Target::kSm90;
  EXPECT_EQ(read_tiny(file).error().code, StatusCode::kUnavailable);
}

TEST(GpuSymbols, HaveTheNamesOfTheTable) {
  EXPECT_THAT(gpu::table_symbols("d"), ElementsAre("dim:d"));
  EXPECT_THAT(gpu::table_symbols("n_v, dtype_kv_k, pitch_w, attr_head_dim"),
              ElementsAre("dim:n_v", "dtype:kv_k", "pitch:w", "attr:head_dim"));
  EXPECT_TRUE(gpu::begins_with("d, p, q", "d, p"));
  EXPECT_TRUE(gpu::begins_with("d, p", "d, p"));
  EXPECT_FALSE(gpu::begins_with("d, pq", "d, p"));
  EXPECT_FALSE(gpu::begins_with("d", "d, p"));
}

}  // namespace
}  // namespace zinc_rt::ring
