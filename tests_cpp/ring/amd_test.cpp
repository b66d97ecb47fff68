// What the tiers of AMD GPUs share and needs no device: packets, code objects, a queue whose device does nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ring/amd/amd_ring.h"
#include "ring/amd/doorbell_path.h"
#include "ring/amd/packet_builder.h"

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

// A device in plain memory whose queue is never read.
class DeadDevice final : public AmdDevice {
 public:
  Result<Memory> alloc(std::uint64_t bytes, Place) override {
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
