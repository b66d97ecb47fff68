// Queues of the tiers of AMD GPUs and the card of the tests in one process, without drivers: the order of ring, wptr and
// doorbell, which ThreadSanitizer sees here; and streams of packets that are broken on purpose, each named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "amd_sim/bench.h"
#include "amd_sim/card.h"
#include "ring/amd/doorbell_path.h"
#include "ring/amd/packet_checks.h"

namespace amd_sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace zinc_rt::ring;  // NOLINT: what is tested

// A device in the process's own memory, whose queue the card's threads read.
class PlainDevice final : public AmdDevice {
 public:
  PlainDevice(const char* kind, const QueueFormat& format, std::uint32_t ring_dwords)
      : kind_(kind), format_(format), ring_dwords_(ring_dwords) {}
  ~PlainDevice() override {
    queue_.reset();
    for (const auto* memory : {&words, &ring})
      if (memory->host != nullptr) free(*memory);
  }
  zinc_rt::Result<Memory> alloc(std::uint64_t bytes, Domain) override {
    constexpr std::uint64_t kPage = 4096;
    bytes = (bytes + kPage - 1) / kPage * kPage;
    auto* host = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes));
    std::memset(host, 0xCD, bytes);
    const auto va = reinterpret_cast<std::uint64_t>(host);
    const std::lock_guard lock(Card::get().mutex);
    machine_.memory.add({"memory", va, bytes, reinterpret_cast<std::uint8_t*>(host), true, true});
    return Memory{host, va, bytes, 0};
  }
  void free(const Memory& memory) override {
    {
      const std::lock_guard lock(Card::get().mutex);
      machine_.forget(memory.va, memory.bytes);
    }
    std::free(memory.host);
  }
  zinc_rt::Result<DeviceMemory> memory() const override { return DeviceMemory{}; }
  zinc_rt::Result<std::unique_ptr<PacketPath>> open_path() override {
    words = *alloc(sizeof(std::uint64_t), Domain::kHost);
    ring = *alloc(ring_dwords_ * sizeof(std::uint32_t), Domain::kHost);
    std::memset(words.host, 0, words.bytes);
    HardwareQueue::Setup setup;
    setup.kind = kind_;
    setup.ring = {ring.va, ring_dwords_, words.va, words.va + 8};
    setup.doorbell = &doorbell;
    setup.on_fault = [this](const Fault& fault) {
      const std::lock_guard lock(fault_mutex_);
      fault_ = fault.what();
    };
    queue_ = std::make_unique<HardwareQueue>(machine_, std::move(setup));
    auto* word = reinterpret_cast<Word*>(words.host);
    return std::make_unique<DoorbellPath>(
        DoorbellPath::Memory{{reinterpret_cast<std::uint32_t*>(ring.host), ring_dwords_}, word, word + 1, &doorbell},
        format_);
  }
  HostWrites host_writes() const override { return HostWrites::kPacket; }
  zinc_rt::Status check() override {
    const auto text = fault();
    return text.empty() ? zinc_rt::Status() : std::unexpected(zinc_rt::Error{zinc_rt::StatusCode::kInternal, text, 0});
  }
  zinc_rt::kernel::Target target() const override { return zinc_rt::kernel::Target::kGfx1201; }
  std::string describe() const override { return "plain"; }
  std::string fault() {
    const std::lock_guard lock(fault_mutex_);
    return fault_;
  }
  // The queue's memory, which is the card's to the end.
  Memory words, ring;
  Word doorbell = 0;

 private:
  std::string kind_;
  const QueueFormat& format_;
  std::uint32_t ring_dwords_;
  Machine machine_;
  std::mutex fault_mutex_;
  std::string fault_;
  std::unique_ptr<HardwareQueue> queue_;
};

struct KindCase {
  const char* kind;
  const QueueFormat& format;
};
class AmdDoorbells : public ::testing::TestWithParam<int> {
 protected:
  static const KindCase& kind() {
    static const KindCase kKinds[] = {{"pm4", kPm4Format}, {"aql", kAqlFormat}, {"userq", kUserPm4Format}};
    return kKinds[GetParam()];
  }
};

TEST_P(AmdDoorbells, EveryPacketRunsAndAShortRingWraps) {
  constexpr std::uint32_t kRingDwords = 256;
  auto proven = ProvenDevice::make(std::make_unique<PlainDevice>(kind().kind, kind().format, kRingDwords),
                                   std::chrono::seconds(30));
  ASSERT_TRUE(proven) << proven.error().message;
  for (const DeviceCheck& check : check_packets(*proven)) EXPECT_EQ(check.error, "") << check.name;
}

// Many buffers under way at once: each adds 1 to what the one before it wrote, by the device alone.
TEST_P(AmdDoorbells, BuffersRunInOrderWithoutWaiting) {
  constexpr std::uint32_t kRingDwords = 64, kBuffers = 300;
  auto proven = ProvenDevice::make(std::make_unique<PlainDevice>(kind().kind, kind().format, kRingDwords),
                                   std::chrono::seconds(30));
  ASSERT_TRUE(proven) << proven.error().message;
  auto& device = proven->device();
  constexpr std::uint64_t kStride = 256;
  const auto packets = *device.alloc(kBuffers * kStride, AmdDevice::Domain::kHost);
  const auto results = *device.alloc((kBuffers + 1) * sizeof(std::uint64_t), AmdDevice::Domain::kHost);
  std::memset(results.host, 0, results.bytes);
  PacketBuilder builder;
  for (std::uint64_t i = 1; i <= kBuffers; ++i) {
    builder.clear();
    // The buffer before must have ended: it has written its number.
    builder.wait_memory(results.va + (i - 1) * 8, pm4::kWaitEqual, static_cast<std::uint32_t>(i - 1));
    builder.copy(results.va + i * 8, i, pm4::kFromImmediate);
    proven->queue().finish(builder, ++proven->last_fence);
    const auto bytes = std::as_bytes(builder.dwords());
    ASSERT_LE(bytes.size(), kStride);
    std::memcpy(packets.host + (i - 1) * kStride, bytes.data(), bytes.size());
    ASSERT_TRUE(proven->queue().submit(packets.va + (i - 1) * kStride,
                                       static_cast<std::uint32_t>(builder.dwords().size()), proven->last_fence));
  }
  const auto status = proven->queue().wait(proven->last_fence);
  ASSERT_TRUE(status) << status.error().message;
  for (std::uint64_t i = 1; i <= kBuffers; ++i) ASSERT_EQ(reinterpret_cast<const std::uint64_t*>(results.host)[i], i);
  device.free(results);
  device.free(packets);
}
INSTANTIATE_TEST_SUITE_P(Kinds, AmdDoorbells, ::testing::Range(0, 3));

TEST(AmdBroken, ADoorbellBeforeWptr) {
  PlainDevice device("pm4", kPm4Format, 256);
  ASSERT_TRUE(device.open_path());
  device.doorbell.store(4);
  while (device.fault().empty()) std::this_thread::yield();
  EXPECT_THAT(device.fault(), HasSubstr("the doorbell was rung with 4 before wptr, which is 0"));
}

// Streams without a ring: what is wrong with them; empty: nothing.
class Stream {
 public:
  explicit Stream(const std::vector<std::string>& program) : program_(program) {
    program_.machine.memory.races = true;
    code_.entry = 0, code_.rsrc1 = 0xF0 << 12 | 3, code_.rsrc2 = 2 << 1;
    builder.barrier(pm4::kAfterTheHost);
  }
  // Workgroups of 32 lanes.
  void dispatch(std::uint32_t groups) { builder.dispatch(code_, Program::kCode, Program::kData, 32, {groups, 1, 1}); }
  std::string run(bool is_of_user = false) {
    CommandProcessor processor(program_.machine, Order::reverse,
                               [](const std::string& what) { throw Fault(kHazard, what); });
    processor.is_of_user = is_of_user;
    try {
      processor.run(std::vector(builder.dwords().begin(), builder.dwords().end()));
      processor.finish();
    } catch (const Fault& fault) {
      return fault.what();
    }
    return {};
  }
  static constexpr std::uint64_t kFence = Program::kData + 2048;
  PacketBuilder builder;

 private:
  Program program_;
  KernelCode code_;
};

// data[lane] += 1.
std::vector<std::string> add_one() {
  return {"v_lshlrev_b32_e32 v1, 2, v0", "global_load_b32 v2, v1, s[0:1]",  "s_wait_loadcnt 0x0 #0",
          "v_add_nc_u32_e32 v2, 1, v2",  "global_store_b32 v1, v2, s[0:1]", "s_endpgm"};
}

TEST(AmdBroken, ABarrierRemoved) {
  Stream right(add_one());
  right.dispatch(1);
  right.builder.barrier();
  right.dispatch(1);
  right.builder.release(Stream::kFence, 1);
  EXPECT_THAT(right.run(), IsEmpty());
  Stream wrong(add_one());
  wrong.dispatch(1);
  wrong.dispatch(1);
  wrong.builder.release(Stream::kFence, 1);
  EXPECT_THAT(wrong.run(), HasSubstr("race: workgroup 0 reads 0x20000 that workgroup 1 wrote"));
}

TEST(AmdBroken, HalfABarrier) {
  Stream stream(add_one());
  stream.dispatch(1);
  const std::uint32_t acquire[] = {pm4::header(pm4::kAcquireMem, 7), 0, ~0u, 0xFF, 0, 0, 10, pm4::kBetweenDispatches};
  stream.builder.append(acquire);
  EXPECT_THAT(stream.run(), HasSubstr("ACQUIRE_MEM with dispatches in flight: it does not wait for them"));
}

TEST(AmdBroken, AFenceOvertaken) {
  Stream early(add_one());
  early.dispatch(1);
  constexpr std::uint32_t kOne[] = {1};
  early.builder.write(Stream::kFence, kOne);
  EXPECT_THAT(early.run(), HasSubstr("WRITE_DATA overtakes dispatches in flight"));
  Stream backwards(add_one());
  backwards.dispatch(1);
  backwards.builder.release(Stream::kFence, 2);
  backwards.builder.release(Stream::kFence, 1);
  EXPECT_THAT(backwards.run(), HasSubstr("goes from 2 to 1: it was overtaken"));
  Stream none(add_one());
  none.dispatch(1);
  EXPECT_THAT(none.run(), HasSubstr("the stream ends with dispatches that nothing waits for"));
}

TEST(AmdBroken, AWaitRemoved) {
  auto program = add_one();
  program.erase(program.begin() + 2);
  Stream stream(program);
  stream.dispatch(1);
  stream.builder.release(Stream::kFence, 1);
  EXPECT_THAT(stream.run(), HasSubstr("missing wait: v2 is still being loaded"));
}

TEST(AmdBroken, ARegisterTooMany) {
  Stream stream({"v_mov_b32_e32 v32, 0", "s_endpgm"});  // of 32
  stream.dispatch(1);
  stream.builder.release(Stream::kFence, 1);
  EXPECT_THAT(stream.run(), HasSubstr("v32 is beyond the 32 VGPRs"));
}

TEST(AmdBroken, PacketsThatAUserQueueMayNotRun) {
  Stream registers(add_one());
  registers.builder.flush_host_writes(HostWrites::kRegisters);
  EXPECT_THAT(registers.run(true), HasSubstr("WAIT_REG_MEM of a register, which this queue may not use"));
  Stream inherits(add_one());
  inherits.builder.indirect(Program::kData, 16);
  EXPECT_THAT(inherits.run(true), HasSubstr("INDIRECT_BUFFER of a user queue without INHERIT_VMID"));
}

}  // namespace
}  // namespace amd_sim
