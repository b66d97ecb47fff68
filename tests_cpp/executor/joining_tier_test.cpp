// A tier of this file's own, which shows what a third one needs: a table of kernels, a Ring, and a row for each join.
// It computes GLU and ADD on the host, and both at once where lowering found the second behind the first.
#include <gmock/gmock.h>

#include <algorithm>

#include "base/error.h"
#include "ir/text.h"
#include "kernels/common/operands.h"
#include "ring/host_memory.h"
#include "tier_graph.h"

namespace zinc_rt {
namespace {

using ring::Binding;
using ring::Packet;

constexpr std::string_view kJoinRows[] = {"GLU gate:a up:b y:h; ADD x:h y:c; keep a b"};
int n_computed = 0;  // loops over rows

class JoiningRing final : public ring::Ring {
 public:
  JoiningRing() : table_(kernel::Target::kCpu) {
    for (const ir::Op op : {ir::Op::GLU, ir::Op::ADD}) {
      kernel::KernelEntry entry;
      entry.file.name = to_string(op);
      entry.file.push_const_bytes = static_cast<std::uint32_t>(4 * ir::rule(op).attrs.size());
      table_.add(op, DType::kF32, std::move(entry));
    }
  }
  std::span<const std::string_view> joins() const override { return kJoinRows; }
  Result<ring::Fence> submit(const ring::Submission& submission) override {
    ZRT_CHECK_OK(check_ranges(submission));
    const ring::PacketBatch& batch = *submission.batch;
    const std::uint32_t end = submission.first + submission.count;
    for (std::uint32_t i = submission.first; i < end;) {
      const bool is_joined = std::ranges::any_of(
          batch.joined, [&](const ring::Joined& joined) { return joined.first == i && i + joined.count <= end; });
      if (is_joined)
        glu_add(batch, i);
      else
        alone(batch, batch.packets[i]);
      i += is_joined ? 2 : 1;
      ++n_computed;
    }
    return ring::Fence{++stats_.submissions};
  }
  Status wait(ring::Fence) override { return {}; }
  Result<std::span<std::byte>> map(const ring::Buffer& buffer) override { return memory_.map(buffer); }
  Result<ring::Buffer> alloc_bo(std::uint64_t bytes, Heap heap) override { return memory_.alloc(bytes, heap); }
  void free_bo(const ring::Buffer& buffer) override { memory_.free(buffer); }
  Result<ring::Kernel> load_kernel(std::span<const std::byte>) override { return ring::Kernel{1}; }
  const kernel::KernelTable& kernels() const override { return table_; }
  ring::RingStats stats() const override { return stats_; }
  std::string describe() const override { return "a tier of a test"; }

 private:
  std::span<float> values(const ring::PacketBatch& batch, const Packet& packet, std::size_t operand) const {
    const Binding& binding = batch.bindings[packet.first_binding + operand];
    return {static_cast<float*>(memory_.address(binding)), binding.bytes / sizeof(float)};
  }
  static float relu(float x) { return std::max(x, 0.0f); }
  void alone(const ring::PacketBatch& batch, const Packet& packet) {
    const auto x = values(batch, packet, 0), y = values(batch, packet, 1), z = values(batch, packet, 2);
    for (std::size_t i = 0; i < z.size(); ++i) z[i] = packet.op == ir::Op::GLU ? relu(x[i]) * y[i] : x[i] + y[i];
  }
  // Packets i and i + 1. The row between them is written only where others read it.
  void glu_add(const ring::PacketBatch& batch, std::uint32_t i) {
    const Packet &glu = batch.packets[i], &add = batch.packets[i + 1];
    const auto gate = values(batch, glu, operand::Glu::gate), up = values(batch, glu, operand::Glu::up),
               h = values(batch, glu, operand::Glu::y), y = values(batch, add, operand::Add::y),
               z = values(batch, add, operand::Add::z);
    const ring::ValueId value = batch.bindings[glu.first_binding + operand::Glu::y].value;
    const bool is_read_later = batch.values[value].last_use > i + 1;
    for (std::size_t at = 0; at < z.size(); ++at) {
      const float row = relu(gate[at]) * up[at];
      if (is_read_later) h[at] = row;
      z[at] = row + y[at];
    }
  }

  kernel::KernelTable table_;
  ring::HostMemory memory_;
  ring::RingStats stats_;
};

const ring::Tier kJoiningTier{
    "joining", "of a test", -1, [] { return std::string(); },
    [](const ring::RingOptions&) -> Result<std::unique_ptr<ring::Ring>> { return std::make_unique<JoiningRing>(); }};

constexpr std::string_view kBuffers = R"(graph "g" stage both
buffer act.a activation f32 [tokens, 4]
buffer act.b activation f32 [tokens, 4]
buffer act.c activation f32 [tokens, 4]
buffer act.h activation f32 [tokens, 4]
buffer act.z activation f32 [tokens, 4]
buffer act.again activation f32 [tokens, 4]
)";
const Memory kGiven = {{"act.a", bytes_of<float>({1, -2, 3, 4, 5, 6, -7, 8})},
                       {"act.b", bytes_of<float>({2, 2, 2, 2, 3, 3, 3, 3})},
                       {"act.c", bytes_of<float>({10, 20, 30, 40, 50, 60, 70, 80})}};

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}
Memory run(std::string_view nodes, std::initializer_list<const char*> wanted) {
  n_computed = 0;
  return run_graph(kJoiningTier, *ir::parse(std::string(kBuffers) + std::string(nodes)), 2, kGiven, wanted);
}

TEST(JoiningTier, ARowOfItsOwnJoinsTwoOps) {
  const auto read = run("act.h = GLU(act.a, act.b) {act=2}\nBARRIER\nact.z = ADD(act.h, act.c)\n", {"act.z", "act.h"});
  EXPECT_EQ(n_computed, 1);
  EXPECT_THAT(floats(read.at("act.z")), ::testing::ElementsAre(12, 20, 36, 48, 65, 78, 70, 104));
  EXPECT_THAT(floats(read.at("act.h")), ::testing::Each(0)) << "nobody reads these rows";
}

TEST(JoiningTier, WritesWhatOthersRead) {
  const auto read =
      run("act.h = GLU(act.a, act.b) {act=2}\nBARRIER\nact.z = ADD(act.h, act.c)\nact.again = ADD(act.h, act.h)\n",
          {"act.z", "act.again"});
  EXPECT_EQ(n_computed, 2);
  EXPECT_THAT(floats(read.at("act.again")), ::testing::ElementsAre(4, 0, 12, 16, 30, 36, 0, 48));
}

TEST(JoiningTier, OthersRunAlone) {
  const auto read =
      run("act.h = GLU(act.a, act.b) {act=2}\nBARRIER\nact.again = ADD(act.a, act.b)\nact.z = ADD(act.h, act.c)\n",
          {"act.z", "act.again"});
  EXPECT_EQ(n_computed, 3);
  EXPECT_THAT(floats(read.at("act.z")), ::testing::ElementsAre(12, 20, 36, 48, 65, 78, 70, 104));
}

}  // namespace
}  // namespace zinc_rt
