// A KFD and a GPU of the tests' own: with LD_PRELOAD=libamd_sim.so a program finds /dev/kfd, /dev/dri/renderD128 and a
// node of the topology. Memory is a sparse file, which the program maps as it would the GPU's. A queue is a thread that
// watches its doorbell and runs what the ring holds. It takes only what the kernel takes, and what a device would leave
// undefined is a fault: its text goes to stderr, the queue stops, and the kernel's events tell of it.
//
// Of the environment: ZRT_AMD_SIM_TARGET=gfx1100 (gfx1201), ZRT_AMD_SIM_ORDER=reverse, ZRT_AMD_SIM_SEED=N (workgroups
// and waves in another order), ZRT_AMD_SIM_RACES=1, ZRT_AMD_SIM_STATS=1.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "amd_sim/command_processor.h"
#include "ring/kfd/abi.h"

namespace amd_sim {
namespace {

namespace kfd = zinc_rt::ring::kfd;
using kfd::u32;
using kfd::u64;

constexpr u32 kGpuId = 4711, kCus = 64;
constexpr u64 kVramBytes = u64{4} << 30;
constexpr u64 kDoorbells = 0x10000000;  // offset of the doorbells in the file of /dev/kfd
constexpr u64 kOffsetStep = 0x10000;    // of objects in the file of the memory
constexpr u32 kOfTheHost = kfd::kGtt | kfd::kUncached | kfd::kCoherent;
constexpr std::uint8_t kGarbage = 0xCD;
constexpr const char* kNodes = "/sys/devices/virtual/kfd/kfd/topology/nodes/";

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

struct Object {
  u64 va, bytes, offset;
  u32 flags;
  void* host = nullptr;  // while it is mapped to the GPU
};
struct Queue {
  std::unique_ptr<CommandProcessor> processor;
  Ring ring;
  std::atomic<u64>* doorbell = nullptr;
  std::atomic<bool> end = false;
  std::thread thread;
};

class Kernel {
 public:
  Kernel() {
    machine_.arch = variable("ZRT_AMD_SIM_TARGET", "gfx1201");
    machine_.memory.races = variable("ZRT_AMD_SIM_RACES", "0") == "1";
    if (const std::string seed = variable("ZRT_AMD_SIM_SEED", ""); !seed.empty())
      machine_.shuffle = true, machine_.seed = std::strtoull(seed.c_str(), nullptr, 10);
    kfd_ = memfd_create("kfd", 0);
    memory_ = memfd_create("drm", 0);
    if (ftruncate(kfd_, kDoorbells + kfd::kDoorbellBytes) != 0 || ftruncate(memory_, off_t{1} << 42) != 0)
      std::perror("amd_sim: files of the devices");
  }

  // A file descriptor for a path of ours; nullopt: it is another's.
  std::optional<int> open(const std::string& path) {
    if (path == "/dev/kfd") return shown(kfd_, kfd_fds_);
    if (path == "/dev/dri/renderD128") return shown(memory_, drm_fds_);
    if (!path.starts_with(kNodes)) return std::nullopt;
    const std::string file = path.substr(std::strlen(kNodes));
    if (file == "0/gpu_id") return text("0\n");
    if (file == "1/gpu_id") return text(std::to_string(kGpuId) + "\n");
    if (file == "1/name") return text("simulated\n");
    if (file == "1/mem_banks/0/properties")
      return text("heap_type 1\nsize_in_bytes " + std::to_string(kVramBytes) + "\n");
    if (file == "1/properties")
      return text("simd_count " + std::to_string(2 * kCus) +
                  "\nsimd_per_cu 2\nmax_waves_per_simd 16\nlds_size_in_kb 64\nmax_slots_scratch_cu 32\narray_count 8\n"
                  "simd_arrays_per_engine 2\nnum_xcc 1\ngfx_target_version " +
                  target_version() + "\ndrm_render_minor 128\n");
    errno = ENOENT;
    return -1;
  }
  void close(int fd) {
    const std::lock_guard lock(files_);
    kfd_fds_.erase(fd);
    drm_fds_.erase(fd);
  }
  bool is_kfd(int fd) {
    const std::lock_guard lock(files_);
    return kfd_fds_.contains(fd);
  }
  // 0, or what errno becomes.
  int control(unsigned request, void* arg) {
    switch (request) {
      case kfd::kGetVersion: *static_cast<kfd::GetVersion*>(arg) = {1, 17}; return 0;
      case kfd::kRuntimeEnable: return 0;
      case kfd::kCreateEvent: return create_event(*static_cast<kfd::CreateEvent*>(arg));
      case kfd::kDestroyEvent: return 0;
      case kfd::kWaitEvents: return wait_events(*static_cast<kfd::WaitEvents*>(arg));
      case kfd::kDestroyQueue: return destroy_queue(static_cast<kfd::DestroyQueue*>(arg)->queue_id);
      default: break;
    }
    const std::lock_guard lock(device_);
    switch (request) {
      case kfd::kAcquireVm: return acquire_vm(*static_cast<kfd::AcquireVm*>(arg));
      case kfd::kAllocMemory: return alloc(*static_cast<kfd::AllocMemory*>(arg));
      case kfd::kFreeMemory: return free(static_cast<kfd::FreeMemory*>(arg)->handle);
      case kfd::kMapMemory: return map(*static_cast<kfd::MapMemory*>(arg));
      case kfd::kUnmapMemory: return unmap(*static_cast<kfd::MapMemory*>(arg));
      case kfd::kCreateQueue: return create_queue(*static_cast<kfd::CreateQueue*>(arg));
      case kfd::kAvailableMemory:
        static_cast<kfd::AvailableMemory*>(arg)->available = kVramBytes - vram_bytes_;
        return 0;
      default: std::fprintf(stderr, "amd_sim: ioctl %08x is not known\n", request); return EINVAL;
    }
  }

 private:
  std::string target_version() const {
    return std::to_string(std::atoi(machine_.arch.substr(3, 2).c_str()) * 10000 + (machine_.arch[5] - '0') * 100 +
                          (machine_.arch[6] - '0'));
  }
  int shown(int file, std::set<int>& fds) {
    const int fd = dup(file);
    const std::lock_guard lock(files_);
    fds.insert(fd);
    return fd;
  }
  static int text(const std::string& content) {
    const int fd = memfd_create("sysfs", 0);
    if (write(fd, content.data(), content.size()) < 0) return -1;
    lseek(fd, 0, SEEK_SET);
    return fd;
  }

  // A process has one address space on a GPU, which belongs to one file of DRM.
  int acquire_vm(const kfd::AcquireVm& a) {
    const std::lock_guard lock(files_);
    if (a.gpu_id != kGpuId || !drm_fds_.contains(static_cast<int>(a.drm_fd))) return EINVAL;
    if (vm_fd_ >= 0 && vm_fd_ != static_cast<int>(a.drm_fd)) return EBUSY;
    vm_fd_ = static_cast<int>(a.drm_fd);
    return 0;
  }
  int alloc(kfd::AllocMemory& a) {
    const u32 heaps = a.flags & (kfd::kVram | kfd::kGtt);
    if (vm_fd_ < 0 || a.gpu_id != kGpuId || a.size == 0 || a.size % kfd::kPageBytes != 0 ||
        a.va % kfd::kPageBytes != 0 || a.va >> kfd::kAddressBits != 0 ||
        (heaps != u32{kfd::kVram} && heaps != u32{kfd::kGtt}))
      return EINVAL;
    if (heaps == kfd::kVram && a.size > kVramBytes - vram_bytes_) return ENOMEM;
    if (heaps == kfd::kVram) vram_bytes_ += a.size;
    a.handle = next_handle_++, a.mmap_offset = next_offset_;
    next_offset_ += (a.size + kOffsetStep - 1) / kOffsetStep * kOffsetStep;
    objects_[a.handle] = {a.va, a.size, a.mmap_offset, a.flags};
    // What was there before: nobody may take it for zeros.
    const std::string garbage(kfd::kPageBytes, static_cast<char>(kGarbage));
    for (const u64 at : {a.mmap_offset, a.mmap_offset + a.size - kfd::kPageBytes})
      if (pwrite(memory_, garbage.data(), garbage.size(), static_cast<off_t>(at)) < 0) return ENOMEM;
    return 0;
  }
  int free(u64 handle) {
    const auto it = objects_.find(handle);
    if (it == objects_.end()) return EINVAL;
    const Object& object = it->second;
    if (object.host != nullptr) return EBUSY;
    fallocate(memory_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(object.offset),
              static_cast<off_t>(object.bytes));
    if (object.flags & kfd::kVram) vram_bytes_ -= object.bytes;
    objects_.erase(it);
    return 0;
  }
  Object* of_map(const kfd::MapMemory& a) {
    const auto it = objects_.find(a.handle);
    const bool is_ours = a.n_gpus == 1 && *reinterpret_cast<const u32*>(a.gpu_ids) == kGpuId;
    return it == objects_.end() || !is_ours ? nullptr : &it->second;
  }
  int map(kfd::MapMemory& a) {
    Object* object = of_map(a);
    if (object == nullptr || object->host != nullptr) return EINVAL;
    void* host =
        mmap(nullptr, object->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, static_cast<off_t>(object->offset));
    if (host == MAP_FAILED) return ENOMEM;
    object->host = host, a.n_done = 1;
    machine_.memory.add({"object " + std::to_string(a.handle), object->va, object->bytes,
                         static_cast<std::uint8_t*>(host), (object->flags & kfd::kWritable) != 0,
                         (object->flags & kfd::kExecutable) != 0});
    return 0;
  }
  int unmap(kfd::MapMemory& a) {
    Object* object = of_map(a);
    if (object == nullptr || object->host == nullptr) return EINVAL;
    machine_.forget(object->va, object->bytes);
    munmap(object->host, object->bytes);
    object->host = nullptr, a.n_done = 1;
    return 0;
  }

  int create_event(kfd::CreateEvent& a) {
    const std::lock_guard lock(events_);
    a.event_id = ++n_events_;
    event_types_[a.event_id] = a.type;
    return 0;
  }
  int wait_events(kfd::WaitEvents& a) {
    const std::lock_guard lock(events_);
    a.result = kfd::kWaitTimeout;
    auto* list = reinterpret_cast<kfd::EventData*>(a.events);
    for (u32 k = 0; k < a.n_events; ++k) {
      const auto type = event_types_.find(list[k].event_id);
      if (type == event_types_.end()) return EINVAL;
      if (type->second != fault_event_) continue;
      if (fault_event_ == kfd::kEventMemory) {
        list[k].gpu_id = kGpuId, list[k].va = fault_va_, list[k].not_present = 1;
      } else {
        list[k].imprecise = kGpuId;  // the word of a hardware exception's gpu_id
      }
      a.result = kfd::kWaitDone;
    }
    return 0;
  }
  void tell(const Fault& fault) {
    std::fprintf(stderr, "amd_sim: %s\n", fault.what());
    const std::lock_guard lock(events_);
    fault_event_ = fault.code == kMemoryFault ? kfd::kEventMemory : kfd::kEventHardware;
    fault_va_ = fault.va;
  }

  // Whether an object that is mapped to the GPU holds these bytes and has these flags.
  bool holds(u64 va, u64 bytes, u32 flags, const char* what) const {
    for (const auto& [handle, object] : objects_) {
      if (object.host == nullptr || va < object.va || va + bytes > object.va + object.bytes) continue;
      if ((object.flags & flags) == flags) return true;
      std::fprintf(stderr, "amd_sim: CREATE_QUEUE: %s has memory without the flags %08x\n", what,
                   flags & ~object.flags);
      return false;
    }
    std::fprintf(stderr, "amd_sim: CREATE_QUEUE: %s is in no memory that is mapped to the GPU\n", what);
    return false;
  }
  int create_queue(kfd::CreateQueue& a) {
    constexpr auto kSave = kfd::save_area_of(kCus);
    if (a.type != kfd::kQueuePm4 || a.gpu_id != kGpuId || a.ring_bytes < 1024 ||
        (a.ring_bytes & (a.ring_bytes - 1)) != 0 || a.percentage > kfd::kMostPercentage ||
        a.priority > kfd::kMostPriority || a.eop_bytes != kfd::kEopBytes ||
        a.ctl_stack_bytes != kSave.ctl_stack_bytes || a.ctx_save_bytes != kSave.ctx_save_bytes)
      return EINVAL;
    if (!holds(a.ring, a.ring_bytes, kOfTheHost, "the ring") || !holds(a.rptr, 8, kOfTheHost, "rptr") ||
        !holds(a.wptr, 8, kOfTheHost, "wptr") || !holds(a.eop, a.eop_bytes, kfd::kWritable, "the end of pipe") ||
        !holds(a.ctx_save, kSave.buffer_bytes, kfd::kWritable, "the save area"))
      return EINVAL;
    const u32 id = n_queues_++ % (kfd::kDoorbellBytes / sizeof(u64));
    auto queue = std::make_unique<Queue>();
    const auto lint = [](const std::string& what) { throw Fault(kHazard, what); };
    const auto order = variable("ZRT_AMD_SIM_ORDER", "") == "reverse" ? Order::reverse : Order::fifo;
    queue->processor = std::make_unique<CommandProcessor>(machine_, order, lint);
    queue->ring = {a.ring, a.ring_bytes / 4, a.rptr, a.wptr};
    auto* page = static_cast<std::uint8_t*>(
        mmap(nullptr, kfd::kDoorbellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, kfd_, kDoorbells));
    queue->doorbell = reinterpret_cast<std::atomic<u64>*>(page + sizeof(u64) * id);
    *queue->doorbell = 0;
    a.doorbell_offset = kDoorbells + sizeof(u64) * id, a.queue_id = id;
    queue->thread = std::thread([this, raw = queue.get()] { watch(*raw); });
    queues_[id] = std::move(queue);
    return 0;
  }
  int destroy_queue(u32 id) {
    std::unique_ptr<Queue> queue;
    {
      const std::lock_guard lock(device_);
      const auto it = queues_.find(id);
      if (it == queues_.end()) return EINVAL;
      queue = std::move(it->second);
      queues_.erase(it);
    }
    queue->end = true;
    queue->thread.join();
    if (variable("ZRT_AMD_SIM_STATS", "") == "1") print_counts(*queue->processor);
    return 0;
  }
  void print_counts(const CommandProcessor& p) const {
    const Counts& c = machine_.counts;
    std::fprintf(stderr, "amd_sim: %llu dwords, %llu dispatches, %llu barriers; %llu wave instructions\n",
                 static_cast<unsigned long long>(p.seen.dwords), static_cast<unsigned long long>(p.seen.dispatches),
                 static_cast<unsigned long long>(p.seen.flushes), static_cast<unsigned long long>(c.total()));
    for (const auto& [name, n] : c.approximate)
      std::fprintf(stderr, "amd_sim: approximate: %s %llu\n", name.c_str(), static_cast<unsigned long long>(n));
  }
  void watch(Queue& queue) {
    u64 seen = 0;
    while (!queue.end) {
      const u64 rung = queue.doorbell->load(std::memory_order_acquire);
      if (rung == seen) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        continue;
      }
      const std::lock_guard lock(device_);
      try {
        u64 wptr;
        std::memcpy(&wptr, machine_.memory.at(queue.ring.wptr, sizeof(wptr), false, "wptr", 0), sizeof(wptr));
        if (wptr < rung)
          throw Fault(kMalformed, "the doorbell was rung with " + std::to_string(rung) + " before wptr, which is " +
                                      std::to_string(wptr) + " in memory");
        if (!queue.processor->run(queue.ring)) throw Fault(kHang, "WAIT_REG_MEM waits for what nothing writes");
        queue.processor->finish();
      } catch (const Fault& fault) {
        tell(fault);
        return;
      }
      seen = rung;
    }
  }

  std::mutex files_, events_, device_;  // of the members below each
  int kfd_ = -1, memory_ = -1;
  std::set<int> kfd_fds_, drm_fds_;
  int vm_fd_ = -1;

  u32 n_events_ = 0, fault_event_ = ~0u;
  u64 fault_va_ = 0;
  std::map<u32, u32> event_types_;

  Machine machine_;
  u64 next_offset_ = 0, next_handle_ = 1, vram_bytes_ = 0;
  u32 n_queues_ = 0;
  std::map<u64, Object> objects_;
  std::map<u32, std::unique_ptr<Queue>> queues_;
};

Kernel& kernel() {
  static Kernel* const kKernel = new Kernel;  // lives as long as the queues' threads
  return *kKernel;
}

int open_any(const char* path, int flags, mode_t mode) {
  if (const auto fd = kernel().open(path)) return *fd;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

}  // namespace
}  // namespace amd_sim

extern "C" {
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(list, int)) : mode_t{0};
  va_end(list);
  return amd_sim::open_any(path, flags, mode);
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
// What open is where the compiler checks its arguments.
int __open_2(const char* path, int flags) {
  return amd_sim::open_any(path, flags, 0);
}
int __open64_2(const char* path, int flags) __attribute__((alias("__open_2")));
int close(int fd) {
  amd_sim::kernel().close(fd);
  return static_cast<int>(syscall(SYS_close, fd));
}
int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* arg = va_arg(list, void*);
  va_end(list);
  if (!amd_sim::kernel().is_kfd(fd)) return static_cast<int>(syscall(SYS_ioctl, fd, request, arg));
  const int error = amd_sim::kernel().control(static_cast<unsigned>(request), arg);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
}
