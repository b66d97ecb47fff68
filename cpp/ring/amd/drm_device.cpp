#include "ring/amd/drm_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

using namespace drm;  // NOLINT: the driver's own names

// The range of device addresses. The range is low, because other projects found that a device address equal to a host
// address made the command processor fault. No number that kernels get has an upper half as large as that of these
// addresses. So addresses in a packet log can be distinguished from numbers.
constexpr u64 kLowestVa = u64{0x5B} << 32, kHighestVa = u64{1} << 46;
constexpr u64 kSmallAlignment = 64 << 10, kLargeAlignment = 2 << 20;  // fragments of the page tables, in bytes
constexpr auto kMappingLimit = std::chrono::seconds(10);

u64 whole_pages(u64 bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

struct DomainRow {
  Domain domain;
  u32 flags, va_flags;
};
constexpr u32 kAll = kReadable | kWritable | kExecutable;
constexpr DomainRow kDomains[] = {{kVram, kCpuAccess, kAll},                             // Domain::kDevice
                                  {kGtt, kCoherent | kUncached, kAll | kTypeUncached}};  // Domain::kHost

}  // namespace

std::uint64_t AddressSpace::take(std::uint64_t bytes, std::uint64_t alignment) {
  for (const auto& [begin, size] : gaps_) {
    const std::uint64_t va = (begin + alignment - 1) / alignment * alignment, end = begin + size;
    if (va + bytes > end || va < begin) continue;
    const std::uint64_t first = begin;
    gaps_.erase(first);
    if (va > first) gaps_[first] = va - first;
    if (va + bytes < end) gaps_[va + bytes] = end - va - bytes;
    return va;
  }
  return 0;
}

void AddressSpace::give_back(std::uint64_t va, std::uint64_t bytes) {
  auto next = gaps_.lower_bound(va);
  if (next != gaps_.end() && next->first == va + bytes) {
    bytes += next->second;
    next = gaps_.erase(next);
  }
  if (next != gaps_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == va) {
      before->second += bytes;
      return;
    }
  }
  gaps_[va] = bytes;
}

DrmDevice::DrmDevice(std::unique_ptr<DrmConnection> drm, Mappings mappings)
    : drm_(std::move(drm)),
      mappings_(mappings),
      addresses_(std::max(kLowestVa, drm_->device().va_begin), std::min(kHighestVa, drm_->device().va_end)) {}

DrmDevice::~DrmDevice() {
  SyncobjDestroy destroy{timeline_, 0};
  if (timeline_ != 0) static_cast<void>(drm_->control(kSyncobjDestroy, &destroy, "SYNCOBJ_DESTROY"));
}

Result<AmdDevice::Memory> DrmDevice::alloc_object(std::uint64_t bytes, u32 domain, u32 flags) {
  const u64 size = whole_pages(bytes);
  const auto refuse = [&](std::string_view what) {
    const auto have = memory();
    return fail(StatusCode::kExhausted, "[{}] cannot allocate {} bytes of {} memory: {}; {} bytes of the device free",
                drm_->tier(), bytes, domain == kVram ? "device" : "host", what, have ? have->free : 0);
  };
  if (size < bytes || size > kHighestVa) return refuse("more than can be addressed");
  GemCreate create{};
  create.in = {size, kPageBytes, domain, flags};
  if (const auto status = drm_->control(kGemCreate, &create, "GEM_CREATE"); !status)
    return refuse(status.error().message);
  Memory memory{nullptr, 0, size, create.handle};
  GemMmap window{};
  window.handle = create.handle;
  std::string what;
  if (const auto status = drm_->control(kGemMmap, &window, "GEM_MMAP"); !status) {
    what = status.error().message;
  } else {
    void* host =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, drm_->fd(), static_cast<off_t>(window.offset));
    if (host != MAP_FAILED) {
      memory.host = static_cast<std::byte*>(host);
      return memory;
    }
    what = fmt::format("mmap: {}", std::strerror(errno));
  }
  free_object(memory);
  return refuse(what);
}

void DrmDevice::free_object(const Memory& memory) {
  if (memory.host != nullptr) ::munmap(memory.host, memory.bytes);
  GemClose close{static_cast<u32>(memory.handle), 0};
  static_cast<void>(drm_->control(kGemClose, &close, "GEM_CLOSE"));
}

// Changes a mapping and, if this class has to wait, waits for its timeline point. A user queue sees the mapping only
// after this point.
Status DrmDevice::change_mapping(const Memory& memory, VaOperation operation, u32 flags) {
  GemVa change{};
  change.handle = static_cast<u32>(memory.handle);
  change.operation = operation, change.flags = flags;
  change.va = memory.va, change.bytes = memory.bytes;
  if (mappings_ == Mappings::kWaited) {
    SyncobjCreate create{};
    if (timeline_ == 0) {
      ZRT_CHECK_OK(drm_->control(kSyncobjCreate, &create, "SYNCOBJ_CREATE"));
      timeline_ = create.handle;
    }
    change.syncobj = timeline_, change.point = ++point_;
  }
  ZRT_CHECK_OK(drm_->control(kGemVa, &change, "GEM_VA"));
  ++n_changes_;
  if (mappings_ == Mappings::kOfTheDriver) return {};
  const auto until = std::chrono::steady_clock::now().time_since_epoch() + kMappingLimit;
  TimelineWait wait{reinterpret_cast<u64>(&timeline_),
                    reinterpret_cast<u64>(&point_),
                    i64{until.count()},
                    1,
                    kWaitAll | kWaitForSubmit,
                    0,
                    0};
  return drm_->control(kTimelineWait, &wait, "SYNCOBJ_TIMELINE_WAIT");
}

Status DrmDevice::map(Memory& memory, Domain domain) {
  memory.va = addresses_.take(memory.bytes, memory.bytes < kLargeAlignment ? kSmallAlignment : kLargeAlignment);
  if (memory.va == 0) return fail(StatusCode::kExhausted, "[{}] no address is left", drm_->tier());
  const auto status = change_mapping(memory, kMap, kDomains[static_cast<int>(domain)].va_flags);
  if (status)
    mapped_[memory.va] = static_cast<u32>(memory.handle);
  else
    addresses_.give_back(memory.va, memory.bytes);
  return status;
}

Result<AmdDevice::Memory> DrmDevice::alloc(std::uint64_t bytes, Domain domain) {
  const DomainRow& row = kDomains[static_cast<int>(domain)];
  ZRT_TRY(auto memory, alloc_object(bytes, row.domain, row.flags));
  if (auto status = map(memory, domain); !status) {
    free_object(memory);
    return std::unexpected(std::move(status).error());
  }
  return memory;
}

void DrmDevice::free(const Memory& memory) {
  static_cast<void>(change_mapping(memory, kUnmap, 0));
  mapped_.erase(memory.va);
  addresses_.give_back(memory.va, memory.bytes);
  free_object(memory);
}

Result<DeviceMemory> DrmDevice::memory() const {
  MemoryInfo info{};
  ZRT_CHECK_OK(drm_->ask(kMemory, info));
  const HeapInfo& vram = info.vram;
  return DeviceMemory{vram.usable > vram.used ? vram.usable - vram.used : 0, vram.total};
}

}  // namespace zinc_rt::ring
