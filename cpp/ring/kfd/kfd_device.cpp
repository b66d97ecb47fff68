#include "ring/kfd/kfd_device.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

using namespace kfd;  // NOLINT: the driver's own names

constexpr u32 kRingBytes = 64 << 10;
constexpr u32 kUsualPriority = 7;
// The first version (major, minor) of the interface that has RUNTIME_ENABLE.
constexpr u32 kRuntimeSince[] = {1, 14};

struct QueueKind {
  QueueType type;
  const QueueFormat& format;
  const char* name;
};
const QueueKind& kind_of(QueueType type) {
  static const QueueKind kKinds[] = {{kQueuePm4, kPm4Format, "PM4"}, {kQueueAql, kAqlFormat, "PM4 in AQL"}};
  return *std::ranges::find(kKinds, type, &QueueKind::type);
}

// A queue that the compute driver has created for this process. The destructor destroys it.
class KfdPath final : public PacketPath {
 public:
  KfdPath(const KfdConnection& kfd, u32 id, const DoorbellPath& queue) : kfd_(kfd), id_(id), queue_(queue) {}
  ~KfdPath() override {
    DestroyQueue destroy{id_, 0};
    static_cast<void>(kfd_.control(kDestroyQueue, &destroy, "DESTROY_QUEUE"));
  }
  bool has_space() const override { return queue_.has_space(); }
  Status submit(u64 at, u32 n_dwords) override { return queue_.submit(at, n_dwords); }
  std::string state() const override { return queue_.state(); }

 private:
  const KfdConnection& kfd_;
  u32 id_;
  DoorbellPath queue_;
};

u64 whole_pages(u64 bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

Result<KfdConnection*> KfdConnection::open() {
  static std::mutex mutex;
  static KfdConnection* connection = nullptr;  // never closed, for the reason in KfdConnection's comment
  const std::lock_guard lock(mutex);
  if (connection == nullptr) {
    auto* made = new KfdConnection;
    if (auto status = made->connect(); !status) {
      delete made;
      return std::unexpected(std::move(status).error());
    }
    connection = made;
  }
  return connection;
}

KfdConnection::~KfdConnection() {
  for (const int fd : {kfd_fd_, drm_fd_})
    if (fd >= 0) ::close(fd);
}

Status KfdConnection::control(unsigned request, void* argument, std::string_view attempt) const {
  while (::ioctl(kfd_fd_, request, argument) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    const int error = errno;
    return fail(error == ENOMEM ? StatusCode::kExhausted : StatusCode::kUnavailable, "[t1] {}: {}", attempt,
                std::strerror(error));
  }
  return {};
}

Status KfdConnection::connect() {
  constexpr const char* kDevice = "/dev/kfd";
  kfd_fd_ = ::open(kDevice, O_RDWR | O_CLOEXEC);
  if (kfd_fd_ < 0)
    return errno == EACCES
               ? fail(StatusCode::kUnavailable, "[t1] {} is not for this user; add it to the group render", kDevice)
               : fail(StatusCode::kUnavailable,
                      "[t1] {} is not there: no AMD GPU, or a kernel without amdgpu's compute driver (HSA_AMD)",
                      kDevice);
  const auto nodes = read_topology();
  if (nodes.empty()) return fail(StatusCode::kUnavailable, "[t1] {} is there, but it shows no GPU", kDevice);
  node_ = nodes.front();
  for (const Node& node : nodes)
    if (target_of(node)) {
      node_ = node;
      break;
    }
  const std::string render = "/dev/dri/renderD" + std::to_string(node_.render_minor);
  drm_fd_ = ::open(render.c_str(), O_RDWR | O_CLOEXEC);
  if (drm_fd_ < 0)
    return fail(StatusCode::kUnavailable, "[t1] {}: {}; the user must be in the group render", render,
                std::strerror(errno));
  GetVersion version{};
  ZRT_CHECK_OK(control(kGetVersion, &version, "GET_VERSION"));
  AcquireVm vm{static_cast<u32>(drm_fd_), node_.gpu_id};
  ZRT_CHECK_OK(control(kAcquireVm, &vm, "ACQUIRE_VM"));
  if (version.major != kRuntimeSince[0] || version.minor < kRuntimeSince[1]) return {};
  // RUNTIME_ENABLE allows a debugger of this process to follow its queues. It fails harmlessly if another runtime in
  // the process has called it already.
  RuntimeEnable runtime{};
  if (::ioctl(kfd_fd_, kRuntimeEnable, &runtime) != 0 && errno != EBUSY)
    return fail(StatusCode::kUnavailable, "[t1] RUNTIME_ENABLE: {}", std::strerror(errno));
  return {};
}

Result<AmdDevice::Word*> KfdConnection::doorbell(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  if (doorbells_ == nullptr) {
    void* page = ::mmap(nullptr, kDoorbellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, kfd_fd_,
                        static_cast<off_t>(offset & ~(kDoorbellBytes - 1)));
    if (page == MAP_FAILED)
      return fail(StatusCode::kUnavailable, "[t1] the page of doorbells: {}", std::strerror(errno));
    doorbells_ = static_cast<std::byte*>(page);
  }
  return reinterpret_cast<AmdDevice::Word*>(doorbells_ + (offset & (kDoorbellBytes - 1)));
}

Result<std::unique_ptr<AmdDevice>> KfdDevice::make(QueueType type) {
  ZRT_TRY(auto* connection, KfdConnection::open());
  ZRT_TRY(const auto target, target_of(connection->node()));
  auto device = std::unique_ptr<KfdDevice>(new KfdDevice(*connection, target, type));
  ZRT_TRY(device->memory_event_, device->create_event(kEventMemory));
  ZRT_TRY(device->hardware_event_, device->create_event(kEventHardware));
  return std::unique_ptr<AmdDevice>(std::move(device));
}

KfdDevice::~KfdDevice() {
  for (const Memory* memory : {&ring_, &words_, &end_of_pipe_, &save_area_})
    if (memory->host != nullptr) free(*memory);
  for (const u32 event : {memory_event_, hardware_event_}) {
    DestroyEvent destroy{event, 0};
    if (event != 0) static_cast<void>(kfd_.control(kDestroyEvent, &destroy, "DESTROY_EVENT"));
  }
}

// Allocates memory. The device must see it at the host's address, so a range of host addresses is reserved first.
Result<AmdDevice::Memory> KfdDevice::alloc(std::uint64_t bytes, Domain domain) {
  const u64 size = whole_pages(bytes);
  const auto refuse = [&](std::string_view what) {
    const auto have = memory();
    return fail(StatusCode::kExhausted, "[t1] cannot allocate {} bytes of {} memory: {}; {} bytes of the device free",
                bytes, domain == Domain::kHost ? "host" : "device", what, have ? have->free : 0);
  };
  if (size < bytes || size >> kAddressBits != 0) return refuse("more than can be addressed");
  void* va = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (va == MAP_FAILED) return refuse(std::strerror(errno));
  AllocMemory request{};
  request.va = reinterpret_cast<u64>(va);
  request.size = size;
  request.gpu_id = kfd_.node().gpu_id;
  request.flags = kWritable | kExecutable | kNoSubstitute |
                  (domain == Domain::kHost ? kGtt | kCoherent | kUncached : u32{kVram} | kPublic);
  if (const auto status = kfd_.control(kAllocMemory, &request, "ALLOC_MEMORY_OF_GPU"); !status) {
    ::munmap(va, size);
    return refuse(status.error().message);
  }
  Memory memory{static_cast<std::byte*>(va), request.va, size, request.handle};
  FreeMemory free_it{request.handle};
  if (::mmap(va, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, kfd_.drm_fd(),
             static_cast<off_t>(request.mmap_offset)) == MAP_FAILED) {
    const int error = errno;
    static_cast<void>(kfd_.control(kFreeMemory, &free_it, "FREE_MEMORY_OF_GPU"));
    ::munmap(va, size);
    return refuse(fmt::format("mmap: {}{}", std::strerror(error),
                              domain == Domain::kDevice ? "; without a resizable BAR the host cannot see it" : ""));
  }
  u32 gpu_id = kfd_.node().gpu_id;
  MapMemory map{request.handle, reinterpret_cast<u64>(&gpu_id), 1, 0};
  const auto status = kfd_.control(kMapMemory, &map, "MAP_MEMORY_TO_GPU");
  if (!status || map.n_done != 1) {
    ::munmap(va, size);
    static_cast<void>(kfd_.control(kFreeMemory, &free_it, "FREE_MEMORY_OF_GPU"));
    return refuse(status ? "MAP_MEMORY_TO_GPU mapped nothing" : status.error().message);
  }
  return memory;
}

void KfdDevice::free(const Memory& memory) {
  u32 gpu_id = kfd_.node().gpu_id;
  MapMemory unmap{memory.handle, reinterpret_cast<u64>(&gpu_id), 1, 0};
  FreeMemory free_it{memory.handle};
  static_cast<void>(kfd_.control(kUnmapMemory, &unmap, "UNMAP_MEMORY_FROM_GPU"));
  ::munmap(memory.host, memory.bytes);
  static_cast<void>(kfd_.control(kFreeMemory, &free_it, "FREE_MEMORY_OF_GPU"));
}

Result<DeviceMemory> KfdDevice::memory() const {
  AvailableMemory available{};
  available.gpu_id = kfd_.node().gpu_id;
  ZRT_CHECK_OK(kfd_.control(kAvailableMemory, &available, "AVAILABLE_MEMORY"));
  return DeviceMemory{available.available, std::max<u64>(kfd_.node().memory_bytes, available.available)};
}

Result<std::unique_ptr<PacketPath>> KfdDevice::open_path() {
  const QueueKind& kind = kind_of(type_);
  SaveArea area = save_area_of(kfd_.node().n_cus);
  // Newer kernels report the sizes of the save area that they require.
  if (kfd_.node().cwsr_bytes != 0 && kfd_.node().ctl_stack_bytes != 0) {
    area.buffer_bytes += kfd_.node().cwsr_bytes - area.ctx_save_bytes;
    area.ctx_save_bytes = kfd_.node().cwsr_bytes;
    area.ctl_stack_bytes = kfd_.node().ctl_stack_bytes;
  }
  ZRT_TRY(ring_, alloc(kRingBytes, Domain::kHost));
  ZRT_TRY(words_, alloc(kPageBytes, Domain::kHost));
  ZRT_TRY(end_of_pipe_, alloc(kEopBytes, Domain::kDevice));
  ZRT_TRY(save_area_, alloc(area.buffer_bytes, Domain::kDevice));
  std::memset(words_.host, 0, words_.bytes);
  auto& words = *reinterpret_cast<AqlWords*>(words_.host);
  words.last_cu = kfd_.node().n_cus - 1;
  words.last_wave = kWavesOfACu - 1;
  words.rptr_offset = offsetof(AqlWords, rptr);
  words.properties = kAqlPointersOf64Bits;
  const std::span ring{reinterpret_cast<u32*>(ring_.host), kRingBytes / sizeof(u32)};
  std::ranges::fill(ring, pm4::kAqlInvalid);
  CreateQueue create{};
  create.ring = ring_.va;
  create.wptr = words_.va + offsetof(AqlWords, wptr);
  create.rptr = words_.va + offsetof(AqlWords, rptr);
  create.ring_bytes = kRingBytes;
  create.gpu_id = kfd_.node().gpu_id;
  create.type = type_;
  create.percentage = kMostPercentage;
  create.priority = kUsualPriority;
  create.eop = end_of_pipe_.va;
  create.eop_bytes = kEopBytes;
  create.ctx_save = save_area_.va;
  create.ctx_save_bytes = static_cast<u32>(area.ctx_save_bytes);
  create.ctl_stack_bytes = static_cast<u32>(area.ctl_stack_bytes);
  ZRT_CHECK_OK(kfd_.control(kCreateQueue, &create, "CREATE_QUEUE"));
  auto doorbell = kfd_.doorbell(create.doorbell_offset);
  if (!doorbell) {
    DestroyQueue destroy{create.queue_id, 0};
    static_cast<void>(kfd_.control(kDestroyQueue, &destroy, "DESTROY_QUEUE"));
    return std::unexpected(std::move(doorbell).error());
  }
  const DoorbellPath::Memory memory{ring, reinterpret_cast<Word*>(&words.rptr), reinterpret_cast<Word*>(&words.wptr),
                                    *doorbell};
  return std::make_unique<KfdPath>(kfd_, create.queue_id, DoorbellPath(memory, kind.format));
}

Result<std::uint32_t> KfdDevice::create_event(EventType type) const {
  CreateEvent event{};
  event.type = type;
  ZRT_CHECK_OK(kfd_.control(kCreateEvent, &event, "CREATE_EVENT"));
  return event.event_id;
}

Status KfdDevice::check() {
  EventData events[2] = {};
  events[0].event_id = memory_event_;
  events[1].event_id = hardware_event_;
  WaitEvents wait{reinterpret_cast<u64>(events), 2, 0, 0, kWaitTimeout};
  ZRT_CHECK_OK(kfd_.control(kWaitEvents, &wait, "WAIT_EVENTS"));
  if (wait.result != kWaitDone) return {};
  if (events[0].gpu_id != 0)
    return fail(StatusCode::kInternal, "[t1] the device is lost: a memory fault at {:#x}{}{}{}", events[0].va,
                events[0].not_present != 0 ? ", which is not mapped" : "",
                events[0].read_only != 0 ? ", which is read only" : "",
                events[0].no_execute != 0 ? ", which is no code" : "");
  return fail(StatusCode::kInternal, "[t1] the device is lost: the kernel has reset it (type {}, cause {})",
              events[1].not_present, events[1].read_only);
}

std::string KfdDevice::describe() const {
  return fmt::format("{} ({}), {} compute units, {} MiB, {} through KFD", kfd_.node().name, to_string(target_),
                     kfd_.node().n_cus, kfd_.node().memory_bytes >> 20, kind_of(type_).name);
}

}  // namespace zinc_rt::ring
