// The part of /dev/kfd's interface that a compute queue needs: ioctl numbers, structs and flags. It is defined here
// because <linux/kfd_ioctl.h> includes DRM headers that some systems do not install. All types are plain data, which
// tests_cpp/amd_sim (an emulated driver) shares.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zinc_rt::ring::kfd {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct GetVersion {
  u32 major, minor;
};
struct AcquireVm {
  u32 drm_fd, gpu_id;
};
struct RuntimeEnable {
  u64 r_debug;
  u32 mode_mask, capabilities_mask;
};
struct AllocMemory {
  u64 va, size, handle, mmap_offset;  // handle and mmap_offset are results
  u32 gpu_id, flags;
};
struct FreeMemory {
  u64 handle;
};
// MAP_MEMORY and UNMAP_MEMORY_FROM_GPU both use this struct.
struct MapMemory {
  u64 handle, gpu_ids;
  u32 n_gpus, n_done;  // n_done is a result and must be n_gpus
};
struct AvailableMemory {
  u64 available;
  u32 gpu_id, pad;
};
struct CreateEvent {
  u64 page_offset;
  u32 trigger_data, type, auto_reset, node_id, event_id, slot_index;
};
struct DestroyEvent {
  u32 event_id, pad;
};
// The kernel's header has a union of the memory exception and the hardware exception here. The layout is the same.
struct EventData {
  // In a hardware exception these four are: reset type, cause, memory lost, gpu_id.
  u32 not_present, read_only, no_execute, imprecise;
  u64 va;
  u32 gpu_id, error_type;
  u64 ext;
  u32 event_id, pad;
};
struct WaitEvents {
  u64 events;
  u32 n_events, wait_for_all, timeout_ms, result;
};
struct CreateQueue {
  u64 ring, wptr, rptr, doorbell_offset;  // doorbell_offset and queue_id are results
  u32 ring_bytes, gpu_id, type, percentage, priority, queue_id;
  u64 eop, eop_bytes, ctx_save;
  u32 ctx_save_bytes, ctl_stack_bytes;
};
struct DestroyQueue {
  u32 queue_id, pad;
};

inline constexpr unsigned kGetVersion = 0x80084B01, kCreateQueue = 0xC0584B02, kDestroyQueue = 0xC0084B03,
                          kCreateEvent = 0xC0204B08, kDestroyEvent = 0x40084B09, kWaitEvents = 0xC0184B0C,
                          kAcquireVm = 0x40084B15, kAllocMemory = 0xC0284B16, kFreeMemory = 0x40084B17,
                          kMapMemory = 0xC0184B18, kUnmapMemory = 0xC0184B19, kAvailableMemory = 0xC0104B23,
                          kRuntimeEnable = 0xC0104B25;
// An ioctl's number includes the size of its struct; this returns whether both agree.
template <class T>
constexpr bool is_size_of(unsigned number) {
  return (number >> 16 & 0x3FFF) == sizeof(T);
}
static_assert(is_size_of<GetVersion>(kGetVersion) && is_size_of<CreateQueue>(kCreateQueue) &&
              is_size_of<DestroyQueue>(kDestroyQueue) && is_size_of<CreateEvent>(kCreateEvent) &&
              is_size_of<DestroyEvent>(kDestroyEvent) && is_size_of<WaitEvents>(kWaitEvents) &&
              is_size_of<AcquireVm>(kAcquireVm) && is_size_of<AllocMemory>(kAllocMemory) &&
              is_size_of<FreeMemory>(kFreeMemory) && is_size_of<MapMemory>(kMapMemory) &&
              is_size_of<MapMemory>(kUnmapMemory) && is_size_of<AvailableMemory>(kAvailableMemory) &&
              is_size_of<RuntimeEnable>(kRuntimeEnable) && sizeof(EventData) == 48);

// Flags of AllocMemory.
enum Flag : u32 {
  kVram = 1u << 0,
  kGtt = 1u << 1,
  kUncached = 1u << 25,
  kCoherent = 1u << 26,
  kNoSubstitute = 1u << 28,
  kPublic = 1u << 29,  // with kVram: the host can access the memory; needs a resizable BAR for all of it
  kExecutable = 1u << 30,
  kWritable = 1u << 31,
};
enum QueueType : u32 { kQueuePm4 = 0, kQueueAql = 2 };
enum EventType : u32 { kEventHardware = 3, kEventMemory = 8 };
enum WaitResult : u32 { kWaitDone = 0, kWaitTimeout = 1 };

inline constexpr u32 kMostPriority = 15, kMostPercentage = 100;
inline constexpr u64 kPageBytes = 4096, kEopBytes = 4096, kDoorbellBytes = 0x2000;
inline constexpr u64 kAddressBits = 47;

// The words of an AQL queue that the firmware reads and writes (HSA's amd_queue_t). rptr and wptr lie between other
// words.
struct AqlWords {
  u32 before_wptr[14];
  u64 wptr;
  u32 aperture_highs[2];
  u32 last_cu, last_wave;  // last_wave: the last wave of a compute unit
  u32 before_rptr[12];
  u64 rptr;
  u32 rptr_offset;  // offset of rptr from the start of this struct
  u32 tmpring, scratch_descriptor[4];
  u64 scratch, scratch_bytes;
  u32 lane_scratch_bytes, properties;
};
static_assert(offsetof(AqlWords, wptr) == 56 && offsetof(AqlWords, last_cu) == 72 && offsetof(AqlWords, rptr) == 128 &&
              offsetof(AqlWords, rptr_offset) == 136 && offsetof(AqlWords, scratch) == 160 &&
              offsetof(AqlWords, properties) == 180);
inline constexpr u32 kAqlPointersOf64Bits = 1u << 1, kWavesOfACu = 32;

// The kernel driver saves a queue's waves in such an area when it preempts the queue. It refuses areas of other sizes
// than these.
struct SaveArea {
  u64 ctl_stack_bytes, ctx_save_bytes, buffer_bytes;
};
constexpr SaveArea save_area_of(u64 n_cus) {
  constexpr u64 kOfACu = 0x60000 + 0x4000 + 0x10000 + 0x1000;  // VGPRs, SGPRs, LDS, hardware registers
  constexpr auto round_up = [](u64 bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; };
  const u64 n_waves = n_cus * kWavesOfACu, ctl = round_up(12 * n_waves + 8 + 40), save = round_up(kOfACu * n_cus) + ctl;
  return {ctl, save, round_up(save + 32 * n_waves)};
}
// The sizes for 64 compute units, which an R9700 has. Others have reported these sizes for that card.
static_assert(save_area_of(64).ctl_stack_bytes == 0x7000 && save_area_of(64).ctx_save_bytes == 0x1D47000 &&
              save_area_of(64).buffer_bytes == 0x1D57000);

}  // namespace zinc_rt::ring::kfd
