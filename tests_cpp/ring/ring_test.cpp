// The contract of ring/ring.h, over every tier that can run here and the null tier.
#include "ring/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ring/registry.h"

namespace zinc_rt::ring {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> tier_names() {
  std::vector<std::string> names;
  for (const Tier* tier : tiers())
    if (tier->unavailable_reason().empty()) names.push_back(tier->name);
  return names;
}

// y[n] = x[n] + z[n], rows of 4, by the tier's own ADD kernel.
class RingContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ring_ = make(); }
  std::unique_ptr<Ring> make() { return *(*find_tier(GetParam()))->make_ring({.threads = 3, .cpu_kernels = {}}); }
  bool computes() const { return GetParam() != "null"; }

  std::vector<std::byte> add_kernel(bool patched = true) {
    auto file = ring_->kernels().find(ir::Op::ADD, DType::kF32)->file;
    for (const auto& symbol : file.symbols) EXPECT_TRUE(!patched || file.patch(symbol.name, 4));
    return kernel::write_zrt(file);
  }
  Buffer alloc(std::uint64_t bytes) { return *ring_->alloc_bo(bytes, Heap::kHostVisible); }
  std::span<float> view(const Buffer& b) {
    const auto bytes = *ring_->map(b);
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / 4};
  }
  // z = x + y over n_tokens rows, the sum `repeat` times accumulated in x.
  PacketBatch add_batch(const Buffer& x, const Buffer& y, const Buffer& z, int repeat = 1) {
    PacketBatch batch;
    const auto kernel = *ring_->load_kernel(add_kernel());
    for (int i = 0; i < repeat; ++i) {
      Packet packet;
      packet.op = ir::Op::ADD;
      packet.kernel = kernel;
      packet.grid[0] = {ir::kTokens, 1};
      packet.first_binding = static_cast<std::uint32_t>(batch.bindings.size());
      packet.n_bindings = 3;
      packet.n_inputs = 2;
      for (const auto& b : {x, y, z}) batch.bindings.push_back({b.id, 0, b.bytes});
      batch.packets.push_back(packet);
    }
    find_dependencies(batch);
    return batch;
  }
  void expect_refused(const PacketBatch& batch, const std::string& words) {
    const auto before = ring_->stats().submissions;
    const auto fence = ring_->submit({&batch, 0, static_cast<std::uint32_t>(batch.packets.size()), {2, 0}});
    ASSERT_FALSE(fence) << words;
    EXPECT_EQ(fence.error().code, StatusCode::kInvalidArgument);
    EXPECT_THAT(fence.error().message, HasSubstr(words));
    EXPECT_EQ(ring_->stats().submissions, before);
  }
  std::unique_ptr<Ring> ring_;
};

TEST_P(RingContract, MemoryIsZeroedMappedAndCounted) {
  std::vector<Buffer> buffers;
  for (const std::uint64_t bytes : {1u, 255u, 4096u, 1000000u}) {
    const auto b = ring_->alloc_bo(bytes, Heap::kDeviceLocal);
    ASSERT_TRUE(b);
    EXPECT_NE(b->id, 0u);
    EXPECT_EQ(b->bytes, bytes);
    if (const auto memory = ring_->map(*b)) {
      EXPECT_EQ(memory->size(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 256, 0u);
      for (const auto byte : *memory) ASSERT_EQ(byte, std::byte{0});
      memory->back() = std::byte{7};
      EXPECT_EQ(ring_->map(*b)->back(), std::byte{7});
    }
    buffers.push_back(*b);
  }
  EXPECT_EQ(ring_->stats().allocated_bytes, 1u + 255 + 4096 + 1000000);
  for (const auto& b : buffers) ring_->free_bo(b);
  EXPECT_EQ(ring_->stats().allocated_bytes, 0u);
  EXPECT_EQ(ring_->map(buffers[0]).error().code, StatusCode::kInvalidArgument);
  ring_->free_bo(buffers[0]);  // twice does no harm
  EXPECT_EQ(ring_->stats().allocated_bytes, 0u);
}

TEST_P(RingContract, ImpossibleSizes) {
  EXPECT_EQ(ring_->alloc_bo(0, Heap::kDeviceLocal).error().code, StatusCode::kInvalidArgument);
  const auto huge = ring_->alloc_bo(1ull << 60, Heap::kDeviceLocal);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, StatusCode::kExhausted);
  EXPECT_THAT(huge.error().message, HasSubstr("1152921504606846976"));
  EXPECT_EQ(ring_->stats().allocated_bytes, 0u);
}

TEST_P(RingContract, ImportIsReadOnlyAndCountedApart) {
  std::vector<float> weights(8, 2.5f);
  const auto imported = ring_->import_host(std::as_bytes(std::span(weights)));
  if (!imported) {
    EXPECT_EQ(imported.error().code, StatusCode::kUnavailable);
    return;
  }
  EXPECT_EQ(ring_->stats().imported_bytes, 32u);
  EXPECT_EQ(ring_->stats().allocated_bytes, 0u);
  EXPECT_EQ(ring_->map(*imported).error().code, StatusCode::kUnavailable);
  EXPECT_FALSE(ring_->import_host({}));
  const auto x = alloc(32), z = alloc(32);
  view(x)[5] = 1.0f;
  const auto batch = add_batch(x, *imported, z);
  ASSERT_TRUE(ring_->wait(*ring_->submit({&batch, 0, 1, {2, 0}})));
  if (computes()) {
    EXPECT_EQ(view(z)[5], 3.5f);
  }
  ring_->free_bo(*imported);
  EXPECT_EQ(ring_->stats().imported_bytes, 0u);
}

TEST_P(RingContract, SubmitRunsAndCounts) {
  const auto x = alloc(64), y = alloc(64), z = alloc(64);
  for (int i = 0; i < 16; ++i) view(x)[i] = float(i), view(y)[i] = 100, view(z)[i] = -1;
  const auto batch = add_batch(x, y, z);
  const auto fence = ring_->submit({&batch, 0, 1, {3, 0}});
  ASSERT_TRUE(fence) << fence.error().message;
  ASSERT_TRUE(ring_->wait(*fence));
  for (int i = 0; i < 16; ++i) {  // 3 rows of 4
    EXPECT_EQ(view(z)[i], computes() && i < 12 ? 100.0f + float(i) : -1.0f);
  }
  EXPECT_EQ(ring_->stats().submissions, 1u);
  EXPECT_EQ(ring_->stats().dispatches, 1u);
  ASSERT_TRUE(ring_->wait(*ring_->submit({&batch, 1, 0, {3, 0}})));  // no packets
  view(z)[0] = -1;
  ASSERT_TRUE(ring_->wait(*ring_->submit({&batch, 0, 1, {0, 0}})));  // no rows
  EXPECT_EQ(view(z)[0], -1.0f);
  EXPECT_EQ(ring_->stats().submissions, 3u);
}

// Only tiers with memory of their own tell of it: of that, objects of kDeviceLocal take what they are.
TEST_P(RingContract, DeviceMemory) {
  const auto before = ring_->device_memory();
  ASSERT_TRUE(before);
  if (GetParam() == "t_cpu" || GetParam() == "null") {
    EXPECT_FALSE(before->has_value());
    return;
  }
  ASSERT_TRUE(before->has_value());
  EXPECT_LT((*before)->free, (*before)->total);
  constexpr std::uint64_t kBytes = 64u << 20;
  ASSERT_TRUE(ring_->alloc_bo(kBytes, Heap::kDeviceLocal));
  alloc(kBytes);  // of the host
  const auto after = ring_->device_memory();
  ASSERT_TRUE(after && *after);
  EXPECT_GE((*before)->free - (*after)->free, kBytes);
  EXPECT_LT((*before)->free - (*after)->free, 2 * kBytes);
}

// Weights in host memory are read where they lie, without a copy on the device however small they are.
TEST_P(RingContract, WeightsInHostMemory) {
  const auto x = alloc(16), y = alloc(16), z = alloc(16);
  const std::vector<float> ones{1, 1, 1, 1}, numbers{1, 2, 3, 4};
  ASSERT_TRUE(ring_->upload(x, 0, {DType::kF32, 1, 4, std::as_bytes(std::span(ones))}));
  ASSERT_TRUE(ring_->upload(y, 0, {DType::kF32, 1, 4, std::as_bytes(std::span(numbers))}));
  // Kernels take memory of the device when they are loaded.
  const auto others = add_batch(z, z, z);
  ASSERT_TRUE(ring_->wait(*ring_->submit({&others, 0, 1, {1, 0}})));
  const auto batch = add_batch(x, y, z);
  const auto before = ring_->device_memory();
  ASSERT_TRUE(ring_->wait(*ring_->submit({&batch, 0, 1, {1, 0}})));
  if (computes()) {
    EXPECT_THAT(std::vector<float>(view(z).begin(), view(z).end()), ::testing::ElementsAre(2, 3, 4, 5));
  }
  const auto after = ring_->device_memory();
  ASSERT_TRUE(before && after);
  if (*before) {
    EXPECT_EQ((*before)->free, (*after)->free);
  }
}

TEST_P(RingContract, FencesRetireInOrder) {
  const auto x = alloc(16), one = alloc(16);
  view(one)[0] = 1;
  const auto batch = add_batch(x, one, x, 50);
  std::vector<Fence> fences;
  for (int i = 0; i < 200; ++i) {
    const auto fence = ring_->submit({&batch, 0, 50, {1, 0}});
    ASSERT_TRUE(fence);
    EXPECT_GT(fence->value, fences.empty() ? 0 : fences.back().value);
    fences.push_back(*fence);
  }
  EXPECT_TRUE(ring_->wait(Fence{0}));
  ASSERT_TRUE(ring_->wait(fences[120]));
  ASSERT_TRUE(ring_->wait(fences[10]));  // long retired
  ASSERT_TRUE(ring_->wait(fences.back()));
  if (computes()) {
    EXPECT_EQ(view(x)[0], 200 * 50.0f);
  }
  const auto unknown = ring_->wait(Fence{fences.back().value + 1});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, StatusCode::kInvalidArgument);
}

TEST_P(RingContract, BadSubmissions) {
  const auto x = alloc(32), y = alloc(32), z = alloc(32);
  const auto good = add_batch(x, y, z);
  EXPECT_FALSE(ring_->submit({nullptr, 0, 0, {1, 0}}));
  EXPECT_FALSE(ring_->submit({&good, 2, 0, {1, 0}}));
  EXPECT_FALSE(ring_->submit({&good, 1, 1, {1, 0}}));
  EXPECT_FALSE(ring_->submit({&good, 1, UINT32_MAX, {1, 0}}));
  auto batch = good;
  batch.packets[0].first_binding = 1;
  expect_refused(batch, "bindings 1 + 3 of 3");
  batch = good;
  batch.packets[0].first_binding = UINT32_MAX;
  expect_refused(batch, "bindings");
  batch = good;
  batch.packets[0].first_push = 8;
  expect_refused(batch, "push constants 8 + 0 of 0");
  batch = good;
  batch.packets[0].grid[1].tile = 0;
  expect_refused(batch, "tile of 0");
  batch = good;
  batch.packets[0].kernel.id = 0;
  expect_refused(batch, "kernel 0 is not loaded");
  batch = good;
  batch.packets[0].kernel.id = 99;
  expect_refused(batch, "kernel 99 is not loaded");
  batch = good;
  batch.bindings[1].bo = 77;
  expect_refused(batch, "buffer object 77 does not exist");
  batch = good;
  batch.bindings[2].offset = 8;
  expect_refused(batch, "leaves buffer object");
  batch = good;
  batch.bindings[2].bytes = UINT64_MAX;
  expect_refused(batch, "leaves buffer object");
  ring_->free_bo(y);
  expect_refused(good, "does not exist");
}

TEST_P(RingContract, KernelsMustFit) {
  EXPECT_EQ(ring_->load_kernel({}).error().code, StatusCode::kCorrupt);
  auto open = *kernel::read_zrt(add_kernel());
  open.symbols.push_back({"dim:late", static_cast<std::uint32_t>(open.code.size())});
  open.code.resize(open.code.size() + 4);
  std::memcpy(open.code.data() + open.symbols.back().code_offset, &kernel::kPlaceholder, 4);
  EXPECT_FALSE(ring_->load_kernel(kernel::write_zrt(open)));
  EXPECT_EQ(ring_->load_kernel(add_kernel(false)).has_value(), open.symbols.size() == 1);  // the null tier's have none
  auto other = *kernel::read_zrt(add_kernel());
  other.target = other.target == kernel::Target::kGfx1201 ? kernel::Target::kSm90 : kernel::Target::kGfx1201;
  const auto foreign = ring_->load_kernel(kernel::write_zrt(other));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, StatusCode::kUnavailable);
  EXPECT_THAT(foreign.error().message, HasSubstr(to_string(other.target)));
}

TEST_P(RingContract, DestructionWaitsForWorkInFlight) {
  const auto x = alloc(4096 * 16), one = alloc(4096 * 16);
  const auto batch = add_batch(x, one, x, 200);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(ring_->submit({&batch, 0, 200, {4096, 0}}));
  ring_.reset();
}

INSTANTIATE_TEST_SUITE_P(Tiers, RingContract, ::testing::ValuesIn(tier_names()),
                         [](const auto& info) { return info.param; });

// T-CPU alone: its kernels are named by opcode and checked against this build.
class CpuKernels : public ::testing::Test {
 protected:
  std::unique_ptr<Ring> ring_ = *(*find_tier("t_cpu"))->make_ring({.threads = 1, .cpu_kernels = {}});
  kernel::ZrtFile linear() {
    auto file = ring_->kernels().find(ir::Op::LINEAR, DType::kF32)->file;
    for (const auto& symbol : file.symbols) static_cast<void>(file.patch(symbol.name, 0));
    return file;
  }
  void refused(const kernel::ZrtFile& file, const std::string& words) {
    const auto loaded = ring_->load_kernel(kernel::write_zrt(file));
    ASSERT_FALSE(loaded) << words;
    EXPECT_THAT(loaded.error().message, HasSubstr(words));
  }
};

TEST_F(CpuKernels, AreCheckedAgainstThisBuild) {
  EXPECT_TRUE(ring_->load_kernel(kernel::write_zrt(linear())));
  auto file = linear();
  file.name = "LINEAR2";
  refused(file, "no kernel is named LINEAR2");
  file = linear();
  file.symbols.pop_back();
  refused(file, "symbols that are not those");
  file = linear();
  file.symbols[0].name = "dim:z";
  refused(file, "symbols that are not those");
  file = linear();
  file.buffer_count = 3;
  refused(file, "3 buffers");
  file = linear();
  file.push_const_bytes = 4;
  refused(file, "4 bytes of push constants");
  file = linear();
  static_cast<void>(file.patch("dim:k", 100));
  refused(file, "needs 400 bytes of local memory, its header gives 0");
}

TEST_F(CpuKernels, BindingsAndPushConstantsMustFitTheKernel) {
  const auto kernel = *ring_->load_kernel(kernel::write_zrt(linear()));
  PacketBatch batch;
  batch.packets.resize(1);
  batch.packets[0].kernel = kernel;
  batch.packets[0].n_bindings = 3;
  batch.bindings.resize(4);
  EXPECT_THAT(ring_->submit({&batch, 0, 1, {1, 0}}).error().message, HasSubstr("3 bindings, its kernel wants 4"));
  batch.packets[0].n_bindings = 4;
  batch.packets[0].push_bytes = 4;
  batch.push.resize(4);
  EXPECT_THAT(ring_->submit({&batch, 0, 1, {1, 0}}).error().message, HasSubstr("4 bytes of push constants"));
}

TEST(GridExtent, Counts) {
  EXPECT_EQ((GridExtent{ir::kTokens, 4}.count({9, 2})), 3u);
  EXPECT_EQ((GridExtent{ir::kOutputs, 4}.count({9, 2})), 1u);
  EXPECT_EQ((GridExtent{ir::kOutputs, 4}.count({9, 0})), 0u);
  EXPECT_EQ((GridExtent{UINT32_MAX, 2}.count({})), 0x80000000u);
  EXPECT_EQ((GridExtent{}.count({})), 1u);
}

TEST(Registry, TiersAreFoundByNameOrRefused) {
  EXPECT_EQ((*find_tier("t_cpu"))->name, "t_cpu");
  for (const auto* name : {"t3", "", "auto", "t_cpu "}) {
    const auto tier = find_tier(name);
    ASSERT_FALSE(tier) << name;
    EXPECT_EQ(tier.error().code, StatusCode::kInvalidArgument);
    EXPECT_THAT(tier.error().message, HasSubstr("t_cpu"));
  }
}

}  // namespace
}  // namespace zinc_rt::ring
