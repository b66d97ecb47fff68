// PM4, the packet format of compute queues on gfx11 and gfx12: opcodes, registers and fields. A packet is a header and
// a body of dwords. All types are plain data, which tests_cpp/amd_sim (an emulated GPU) shares.
#pragma once

#include <cstdint>

namespace zinc_rt::ring::pm4 {

using u32 = std::uint32_t;

enum Opcode : u32 {
  kNop = 0x10,
  kDispatchDirect = 0x15,
  kWaitRegMem = 0x3C,
  kWriteData = 0x37,
  kIndirectBuffer = 0x3F,
  kCopyData = 0x40,
  kEventWrite = 0x46,
  kReleaseMem = 0x49,
  kAcquireMem = 0x58,
  kSetShReg = 0x76,
  kSetUconfigReg = 0x79,
  kHdpFlush = 0x95,
};
constexpr u32 header(Opcode opcode, u32 body_dwords) {
  return 0xC0000000u | (body_dwords - 1) << 16 | u32{opcode} << 8;
}
inline constexpr u32 kOneDwordNop = 0xFFFF1000;

// Registers that SET_SH_REG writes, by their dword address. The packet has the number of the register minus kShBase.
inline constexpr u32 kShBase = 0x2C00, kShEnd = 0x3000, kUconfigBase = 0xC000;
enum Register : u32 {
  kStartX = 0x2E04,  // the registers for Y and Z follow
  kNumThreadX = 0x2E07,
  kPgmLo = 0x2E0C,  // low word: address >> 8; high word: address >> 40
  kScratchBaseLo = 0x2E10,
  kPgmRsrc1 = 0x2E12,
  kPgmRsrc2 = 0x2E13,
  kResourceLimits = 0x2E15,
  kTmpringSize = 0x2E18,
  kRestartX = 0x2E1B,
  kPgmRsrc3 = 0x2E28,
  kUserData0 = 0x2E40,
};
inline constexpr u32 kMostUserData = 16;

// Fields of the register PGM_RSRC2.
inline constexpr u32 kScratchEnable = 1u << 0, kUserSgprShift = 1, kUserSgprMask = 31, kLdsShift = 15, kLdsMask = 511,
                     kLdsUnit = 512;
constexpr u32 lds_field(u32 bytes) {
  return (bytes + kLdsUnit - 1) / kLdsUnit << kLdsShift;
}

// The next bits belong to DISPATCH_INITIATOR, the last dword of DISPATCH_DIRECT.
inline constexpr u32 kShaderEnable = 1u << 0, kForceStartAt000 = 1u << 2, kThreadDimensions = 1u << 5,
                     kWave32 = 1u << 15;

// EVENT_WRITE: waits until all earlier dispatches have ended.
inline constexpr u32 kCsPartialFlush = 7, kEventIndexShift = 8, kFlushIndex = 4;
inline constexpr u32 kFlushEvent = kCsPartialFlush | kFlushIndex << kEventIndexShift;

// GCR_CNTL, the last dword of ACQUIRE_MEM, tells which caches to invalidate and, for L2, to write back.
inline constexpr u32 kInvInstructions = 1u << 0, kInvScalar = 1u << 7, kInvVector = 1u << 8, kInvL1 = 1u << 9,
                     kInvL2 = 1u << 14, kWriteBackL2 = 1u << 15;
inline constexpr u32 kBetweenDispatches = kInvScalar | kInvVector | kInvL1;
inline constexpr u32 kAfterTheHost = kBetweenDispatches | kInvInstructions | kInvL2 | kWriteBackL2;

// RELEASE_MEM runs at the end of the pipe: it flushes caches, then writes a value.
inline constexpr u32 kFlushTimestampEvent = 0x14, kEndOfPipeIndex = 5;
inline constexpr u32 kReleaseFlags = 0x0070F000;  // writes back and invalidates all caches, in sequence
inline constexpr u32 kReleaseWriteBackL2 = 1u << 21;
inline constexpr u32 kReleaseEvent = kFlushTimestampEvent | kEndOfPipeIndex << kEventIndexShift | kReleaseFlags;
inline constexpr u32 kDataShift = 29, kData32 = 1, kData64 = 2, kDataClock = 3;

// Fields of WRITE_DATA and COPY_DATA: the source and the destination of a value. Device memory is accessed past the
// shaders' caches.
inline constexpr u32 kFromMemory = 2, kFromImmediate = 5, kFromClock = 9, kToMemory = 5u << 8, kCount64 = 1u << 16,
                     kConfirmWrite = 1u << 20;

// Fields of WAIT_REG_MEM with memory: it waits until a comparison holds.
inline constexpr u32 kWaitAtLeast = 5, kWaitMemory = 1u << 4, kWaitPollInterval = 4;

// Fields of WAIT_REG_MEM with two registers: it writes the first register, then waits until all bits of the second
// register are set. This flushes the window through which the host writes device memory. The registers are those of
// NBIF 6.3.1 and NBIO 4.3.
inline constexpr u32 kWaitEqual = 3, kWriteThenWait = 1u << 6;
inline constexpr u32 kHdpFlushRequest = 0xD20 + 0x106, kHdpFlushDone = 0xD20 + 0x107, kHdpAll = 0xFFFFFFFF,
                     kHdpPollInterval = 0x20;

inline constexpr u32 kIndirectValid = 1u << 23, kIndirectInheritVmid = 1u << 30, kIndirectDwordsMask = 0xFFFFF;
// The dwords of a buffer of packets must be a multiple of this.
inline constexpr u32 kBufferDwords = 16;

// An AQL packet that carries PM4 consists of a header, 4 dwords of PM4, the number of dwords left (10), and zeros. The
// header's low half holds the packet type (kVendor is 0), the barrier bit, and the scopes of its fences.
inline constexpr u32 kAqlDwords = 16, kAqlVendor = 0, kAqlInvalid = 1, kAqlTypeMask = 255, kAqlBarrier = 1u << 8,
                     kAqlAcquireSystem = 2u << 9, kAqlReleaseSystem = 2u << 11, kAqlFormatPm4 = 1, kAqlRest = 10;

}  // namespace zinc_rt::ring::pm4
