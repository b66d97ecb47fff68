// What the tiers of AMD GPUs share and needs no device: packets, code objects, a queue whose device does nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ring/amd/amd_ring.h"
#include "ring/amd/doorbell_path.h"
#include "ring/amd/drm_device.h"
#include "ring/amd/packet_builder.h"
#include "ring/amd/packet_text.h"

namespace zinc_rt::ring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Bytes as the packets' formats have them, written out once.
TEST(AmdPackets, AreTheseDwords) {
  PacketBuilder builder;
  builder.barrier();
  EXPECT_THAT(std::vector(builder.dwords().begin(), builder.dwords().end()),
              ElementsAre(0xC0004600, 0x407, 0xC0065800, 0, 0xFFFFFFFF, 0xFF, 0, 0, 10, 0x380));
  builder.clear();
  builder.release(0x123456789A8, 7);
  EXPECT_THAT(std::vector(builder.dwords().begin(), builder.dwords().end()),
              ElementsAre(0xC0064900, 0x70F514, 0x40000000, 0x456789A8, 0x123, 7, 0, 0));
  builder.clear();
  builder.indirect(0x123456789A8, 300);
  EXPECT_THAT(std::vector(builder.dwords().begin(), builder.dwords().end()),
              ElementsAre(0xC0023F00, 0x456789A8, 0x123, 0x80012C));
  builder.clear();
  builder.nop(2);
  EXPECT_THAT(std::vector(builder.dwords().begin(), builder.dwords().end()), ElementsAre(0xFFFF1000, 0xFFFF1000));
}

TEST(AmdPackets, ADispatchWritesWhatChanges) {
  PacketBuilder builder;
  const KernelCode kernel{"k", 0x100, 513, 192, 0x600F0003, 0x84, 0x10};
  builder.dispatch(kernel, 0x7F0000001000, 0x7F0000002000, 256, {3, 2, 1});
  EXPECT_THAT(std::vector(builder.dwords().begin(), builder.dwords().end()),
              ElementsAre(0xC0037600, 0x204, 0, 0, 0,                      // START
                          0xC0037600, 0x207, 256, 1, 1,                    // NUM_THREAD
                          0xC0027600, 0x212, 0x600F0003, 0x84 | 2u << 15,  // RSRC1, RSRC2 with the LDS
                          0xC0017600, 0x215, 0, 0xC0017600, 0x218, 0,      // RESOURCE_LIMITS, TMPRING_SIZE
                          0xC0037600, 0x21B, 0, 0, 0,                      // RESTART
                          0xC0017600, 0x228, 0x10,                         // RSRC3
                          0xC0027600, 0x20C, 0x11, 0x7F,                   // PGM, by 256 bytes
                          0xC0027600, 0x240, 0x2000, 0x7F00,               // USER_DATA: the arguments
                          0xC0031500, 3, 2, 1, 0x8005));
  const std::size_t first = builder.dwords().size();
  const KernelCode other{"o", 0x300, 0, 192, 0x600F0001, 0x84, 0x10};
  builder.dispatch(other, 0x7F0000001000, 0x7F0000002100, 128, {1, 1, 1});
  EXPECT_LE(builder.dwords().size() - first, 22u);
}

TEST(AmdCodeObjects, WhatIsNoneIsRefused) {
  std::vector<std::byte> bytes(128);
  EXPECT_THAT(read_code_object({}, "x").error().message, HasSubstr("6 bytes at 0, it has 0"));
  EXPECT_THAT(read_code_object(bytes, "x").error().message, HasSubstr("machine 0, 224 wanted"));
  std::memcpy(bytes.data(), "\177ELF\2\1", 6);
  bytes[18] = std::byte{224};
  EXPECT_TRUE(read_code_object(bytes, "x"));  // nothing in it
  bytes[56] = std::byte{9};                   // parts that lie outside
  EXPECT_EQ(read_code_object(bytes, "x").error().code, StatusCode::kCorrupt);
  bytes[56] = std::byte{0};
  bytes[60] = std::byte{9};
  EXPECT_EQ(read_code_object(bytes, "x").error().code, StatusCode::kCorrupt);
}

// A step is one packet of a queue, whatever its length.
TEST(AmdQueue, AStepIsFourDwordsAndADoorbell) {
  std::uint32_t ring[64] = {};
  AmdDevice::Word rptr = 0, wptr = 0, doorbell = 0;
  DoorbellPath pm4({ring, &rptr, &wptr, &doorbell}, kPm4Format);
  ASSERT_TRUE(pm4.submit(0x123456789A00, 9520));
  EXPECT_EQ(wptr, 4u);
  EXPECT_EQ(doorbell, 4u);
  EXPECT_THAT(std::vector(ring, ring + 5), ElementsAre(0xC0023F00, 0x56789A00, 0x1234, 1u << 23 | 9520, 0));
  wptr = doorbell = 0;
  DoorbellPath user({ring, &rptr, &wptr, &doorbell}, kUserPm4Format);
  ASSERT_TRUE(user.submit(0x123456789A00, 9520));
  EXPECT_EQ(ring[3], 1u << 30 | 1u << 23 | 9520);
  wptr = 0;
  DoorbellPath aql({ring, &rptr, &wptr, &doorbell}, kAqlFormat);
  for (std::uint64_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(aql.has_space());
    ASSERT_TRUE(aql.submit(0x123456789A00, 9520));
    EXPECT_EQ(wptr, i + 1);
    EXPECT_EQ(doorbell, i);  // the number of the packet
  }
  EXPECT_FALSE(aql.has_space());
  rptr = 1;
  EXPECT_TRUE(aql.has_space());
  EXPECT_THAT(std::vector(ring + 16, ring + 23), ElementsAre(1u << 16 | 2u << 11 | 2u << 9 | 1u << 8, 0xC0023F00,
                                                             0x56789A00, 0x1234, 1u << 23 | 9520, 10, 0));
}

TEST(AmdPackets, TheWindowIsFlushedInSevenDwordsByAnyWay) {
  const auto dwords_of = [](HostWrites way) {
    PacketBuilder builder;
    builder.flush_host_writes(way);
    return std::vector(builder.dwords().begin(), builder.dwords().end());
  };
  constexpr std::uint32_t kNop = 0xFFFF1000;
  EXPECT_THAT(dwords_of(HostWrites::kRegisters), ElementsAre(0xC0053C00, 0x43, 0xE26, 0xE27, ~0u, ~0u, 0x20));
  EXPECT_THAT(dwords_of(HostWrites::kPacket), ElementsAre(0xC0009500, 0, kNop, kNop, kNop, kNop, kNop));
  EXPECT_THAT(dwords_of(HostWrites::kDriver), ElementsAre(kNop, kNop, kNop, kNop, kNop, kNop, kNop));
}

TEST(AmdAddresses, GapsAreFoundAndJoined) {
  AddressSpace space(0x1000, 0x9000);
  const auto a = space.take(0x1000, 0x1000), b = space.take(0x2000, 0x4000), c = space.take(0x1000, 0x1000);
  EXPECT_EQ(a, 0x1000u);
  EXPECT_EQ(b, 0x4000u);
  EXPECT_EQ(c, 0x2000u);
  EXPECT_EQ(space.take(0x4000, 0x1000), 0u);
  space.give_back(b, 0x2000);
  space.give_back(a, 0x1000);
  space.give_back(c, 0x1000);
  EXPECT_EQ(space.take(0x8000, 0x1000), 0x1000u);  // all of it is one gap again
  EXPECT_EQ(space.take(1, 1), 0u);
}

TEST(AmdPacketText, DamageIsNamed) {
  PacketBuilder builder;
  builder.barrier();
  auto packets = std::vector(builder.dwords().begin(), builder.dwords().end());
  const auto nameless = [](std::uint64_t) { return std::string(); };
  EXPECT_EQ(*packet_text(packets, nameless), "EVENT_WRITE 0x407\nACQUIRE_MEM 0 0xffffffff 0xff 0 0 0xa 0x380\n");
  packets.pop_back();
  EXPECT_THAT(packet_text(packets, nameless).error().message, HasSubstr("dword 2 of 9 is 0xc0065800, no packet"));
  EXPECT_FALSE(count_packets(packets));
}

// A device in plain memory whose queue is never read.
class DeadDevice final : public AmdDevice {
 public:
  Result<Memory> alloc(std::uint64_t bytes, Domain) override {
    constexpr std::uint64_t kPage = 4096;
    bytes = (bytes + kPage - 1) / kPage * kPage;
    memory_.push_back(std::make_unique<std::byte[]>(bytes));
    return Memory{memory_.back().get(), reinterpret_cast<std::uint64_t>(memory_.back().get()), bytes, 0};
  }
  void free(const Memory&) override {}
  Result<DeviceMemory> memory() const override { return DeviceMemory{}; }
  Result<std::unique_ptr<PacketPath>> open_path() override {
    return std::make_unique<DoorbellPath>(DoorbellPath::Memory{ring_, &words_[0], &words_[1], &words_[2]}, kPm4Format);
  }
  HostWrites host_writes() const override { return HostWrites::kRegisters; }
  Status check() override { return health; }
  kernel::Target target() const override { return kernel::Target::kGfx1201; }
  std::string describe() const override { return "dead"; }
  Status health;

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::uint32_t ring_[256] = {};
  Word words_[3] = {};
};

TEST(AmdQueue, ADeviceThatDoesNothingIsLost) {
  const auto proven = ProvenDevice::make(std::make_unique<DeadDevice>(), std::chrono::milliseconds(50));
  ASSERT_FALSE(proven);
  EXPECT_EQ(proven.error().code, StatusCode::kInternal);
  EXPECT_THAT(proven.error().message,
              HasSubstr("the device is lost: no end of work after 1000 ms, fence 0 of 1, rptr 0 of 4"));
}

TEST(AmdQueue, AFaultOfTheKernelEndsTheWait) {
  auto device = std::make_unique<DeadDevice>();
  device->health = std::unexpected(Error{StatusCode::kInternal, "a memory fault at 0x1000", 0});
  const auto proven = ProvenDevice::make(std::move(device), std::chrono::milliseconds(50));
  ASSERT_FALSE(proven);
  EXPECT_THAT(proven.error().message, HasSubstr("a memory fault at 0x1000"));
}

}  // namespace
}  // namespace zinc_rt::ring
