// The part of amdgpu's render-node interface that a compute queue needs: ioctl numbers, structs and flags. It is
// defined here because a system's headers may be older than its kernel. All types are plain data, which
// tests_cpp/amd_sim (an emulated driver) shares.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zinc_rt::ring::drm {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

// Structs of the DRM core.
struct Version {
  u32 major, minor, patch, pad;
  u64 name_bytes, name, date_bytes, date, text_bytes, text;
};
struct GemClose {
  u32 handle, pad;
};
struct SyncobjCreate {
  u32 handle, flags;
};
struct SyncobjDestroy {
  u32 handle, pad;
};
struct TimelineWait {
  u64 handles, points;
  i64 until_ns;  // deadline, as a time of the monotonic clock
  u32 n_handles, flags, first_signaled, pad;
};

// Structs of amdgpu. As in the kernel's header, some structs are unions of a call's input and output.
union GemCreate {
  struct {
    u64 bytes, alignment, domains, flags;
  } in;
  u32 handle;
};
union GemMmap {
  u32 handle;
  u64 offset;
};
struct GemVa {
  u32 handle, pad, operation, flags;
  u64 va, offset, bytes;
  // Only kernels with user queues have the next members. `point` is the point of a timeline that is reached once the
  // device sees the mapping.
  u64 point;
  u32 syncobj, n_waited;
  u64 waited;
};
union Context {
  struct {
    u32 op, flags, id, priority;
  } in;
  u32 id;
  struct {
    u64 flags;
    u32 hangs, reset;
  } state;
};
struct Info {
  u64 result;
  u32 bytes, query;
  u32 selector[4];  // arguments of the query: an engine or a firmware, and an instance
};
// Only the fields that are used have names. The kernel writes no more than this size.
struct DeviceInfo {
  u32 ids[12];
  u32 n_cus, pad[21];
  u64 flags, va_begin, va_end;
  u32 rest[69];
  u32 userq_ip_mask, tail[2];
};
struct EngineInfo {
  u32 major, minor;
  u64 capabilities;
  u32 start_alignment, size_alignment, rings;
  u32 version;       // major << 16 | minor << 8 | revision
  u32 n_user_slots;  // number of user queues; only newer kernels write it
  u32 pad;
};
struct FirmwareInfo {
  u32 version, feature;
};
struct HeapInfo {
  u64 total, usable, used, largest;
};
struct MemoryInfo {
  HeapInfo vram, visible_vram, gtt;
};
struct FaultInfo {
  u64 va;
  u32 status, hub;  // status 0: there was no fault
};
struct BoListEntry {
  u32 handle, priority;
};
struct BoList {
  u32 operation, list, n_entries, entry_bytes;
  u64 entries;
};
struct CsIb {
  u32 pad, flags;
  u64 va;
  u32 bytes, engine, instance, ring;
};
struct CsChunk {
  u32 id, n_dwords;
  u64 data;
};
union Cs {
  struct {
    u32 context, list, n_chunks, flags;
    u64 chunks;  // address of an array of pointers
  } in;
  u64 handle;
};
union WaitCs {
  struct {
    u64 handle;
    u64 until_ns;  // deadline, as a time of the monotonic clock
    u32 engine, instance, ring, context;
  } in;
  u64 is_busy;
};
struct UserqMqd {
  u64 eop;
};
union Userq {
  struct {
    u32 op, id, engine, doorbell, doorbell_slot, flags;
    u64 ring, ring_bytes, rptr, wptr, mqd, mqd_bytes;
  } in;
  u32 id;
};

inline constexpr unsigned kVersion = 0xC0406400, kGemClose = 0x40086409, kSyncobjCreate = 0xC00864BF,
                          kSyncobjDestroy = 0xC00864C0, kTimelineWait = 0xC02864CA, kGemCreate = 0xC0206440,
                          kGemMmap = 0xC0086441, kContext = 0xC0106442, kCs = 0xC0186444, kInfo = 0x40206445,
                          kGemVa = 0x40406448, kWaitCs = 0xC0206449, kUserq = 0xC0486456;
// An ioctl's number includes the size of its struct; this returns whether both agree.
template <class T>
constexpr bool is_size_of(unsigned number) {
  return (number >> 16 & 0x3FFF) == sizeof(T);
}
static_assert(is_size_of<Version>(kVersion) && is_size_of<GemClose>(kGemClose) &&
              is_size_of<SyncobjCreate>(kSyncobjCreate) && is_size_of<SyncobjDestroy>(kSyncobjDestroy) &&
              is_size_of<TimelineWait>(kTimelineWait) && is_size_of<GemCreate>(kGemCreate) &&
              is_size_of<GemMmap>(kGemMmap) && is_size_of<Context>(kContext) && is_size_of<Cs>(kCs) &&
              is_size_of<Info>(kInfo) && is_size_of<GemVa>(kGemVa) && is_size_of<WaitCs>(kWaitCs) &&
              is_size_of<Userq>(kUserq));
static_assert(offsetof(DeviceInfo, n_cus) == 48 && offsetof(DeviceInfo, va_begin) == 144 &&
              offsetof(DeviceInfo, va_end) == 152 && offsetof(DeviceInfo, userq_ip_mask) == 436 &&
              sizeof(DeviceInfo) == 448);
static_assert(sizeof(EngineInfo) == 40 && offsetof(EngineInfo, version) == 28 && sizeof(MemoryInfo) == 96 &&
              sizeof(FaultInfo) == 16 && sizeof(CsIb) == 32 && sizeof(CsChunk) == 16 && sizeof(BoList) == 24 &&
              sizeof(UserqMqd) == 8);

enum Domain : u32 { kGtt = 2, kVram = 4, kDoorbell = 0x40 };
enum GemFlag : u32 { kCpuAccess = 1u << 0, kCoherent = 1u << 13, kUncached = 1u << 14 };
enum VaOperation : u32 { kMap = 1, kUnmap = 2 };
enum VaFlag : u32 { kReadable = 1u << 1, kWritable = 1u << 2, kExecutable = 1u << 3, kTypeUncached = 4u << 5 };
enum ContextOp : u32 { kContextAlloc = 1, kContextFree = 2, kContextState = 4 };
enum ContextFlag : u32 { kWasReset = 1u << 0, kMemoryLost = 1u << 1, kGuilty = 1u << 2 };
enum Query : u32 { kEngineInfo = 2, kFirmware = 0x0E, kDeviceInfo = 0x16, kMemory = 0x19, kFault = 0x23 };
enum Firmware : u32 { kMe = 4, kPfp = 5, kMec = 8, kMes = 0x1A };
enum Engine : u32 { kGraphics = 0, kCompute = 1 };
enum Chunk : u32 { kChunkIb = 1, kChunkBos = 6 };
enum UserqOp : u32 { kUserqCreate = 1, kUserqFree = 2 };
inline constexpr u32 kIbSynchronizes = 1u << 6;  // caches are written back and invalidated before and after the buffer
inline constexpr u32 kWaitAll = 1u << 0, kWaitForSubmit = 1u << 1;
inline constexpr u32 kNotTold = ~u32{0};  // n_user_slots keeps this value if the kernel did not write it
inline constexpr u64 kPageBytes = 4096;

}  // namespace zinc_rt::ring::drm
