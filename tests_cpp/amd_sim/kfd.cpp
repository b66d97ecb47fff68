// The compute driver of the tests, /dev/kfd. It takes only what the kernel takes, and what a device would leave
// undefined is a fault: its text goes to stderr, the queue stops, and the kernel's events tell of it.
#include "ring/kfd/abi.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "amd_sim/card.h"
#include "amd_sim/drivers.h"

namespace amd_sim {
namespace {

namespace kfd = zinc_rt::ring::kfd;
using kfd::u32;
using kfd::u64;

constexpr u64 kDoorbells = 0x10000000;  // offset of the doorbells in the file of /dev/kfd
constexpr u32 kOfTheHost = kfd::kGtt | kfd::kUncached | kfd::kCoherent;
constexpr const char* kNodes = "/sys/devices/virtual/kfd/kfd/topology/nodes/";

struct Object {
  u64 va, bytes, offset;
  u32 flags;
  void* host = nullptr;  // while it is mapped to the GPU
};

class Kfd {
 public:
  Kfd() : file_(memfd_create("kfd", 0)), machine_(card_.make_machine()) {
    if (ftruncate(file_, kDoorbells + kfd::kDoorbellBytes) != 0) std::perror("amd_sim: the file of /dev/kfd");
  }

  std::optional<int> open(const std::string& path) {
    const bool is_there = variable("ZRT_AMD_SIM_KFD", "on") != "off";
    if (path == "/dev/kfd") {
      if (!is_there) return errno = ENOENT, -1;
      const int fd = dup(file_);
      const std::lock_guard lock(files_);
      fds_.insert(fd);
      return fd;
    }
    if (!path.starts_with(kNodes)) return std::nullopt;
    const std::string file = path.substr(std::strlen(kNodes));
    if (is_there && file == "0/gpu_id") return text_file("0\n");
    if (is_there && file == "1/gpu_id") return text_file(std::to_string(kGpuId) + "\n");
    if (is_there && file == "1/name") return text_file("simulated\n");
    if (is_there && file == "1/mem_banks/0/properties")
      return text_file("heap_type 1\nsize_in_bytes " + std::to_string(card_.vram_bytes()) + "\n");
    if (is_there && file == "1/properties")
      return text_file("simd_count " + std::to_string(2 * kCus) +
                       "\nsimd_per_cu 2\nmax_waves_per_simd 16\nlds_size_in_kb 64\nmax_slots_scratch_cu 32\n"
                       "array_count 8\nsimd_arrays_per_engine 2\nnum_xcc 1\ngfx_target_version " +
                       card_.target_version() + "\ndrm_render_minor 128\n");
    errno = ENOENT;
    return -1;
  }
  void close(int fd) {
    const std::lock_guard lock(files_);
    fds_.erase(fd);
  }
  bool has(int fd) {
    const std::lock_guard lock(files_);
    return fds_.contains(fd);
  }
  int control(unsigned request, void* arg) {
    switch (request) {
      case kfd::kGetVersion: *static_cast<kfd::GetVersion*>(arg) = {1, 17}; return 0;
      case kfd::kRuntimeEnable: return 0;
      case kfd::kCreateEvent: return create_event(*static_cast<kfd::CreateEvent*>(arg));
      case kfd::kDestroyEvent: return destroy_event(static_cast<kfd::DestroyEvent*>(arg)->event_id);
      case kfd::kWaitEvents: return wait_events(*static_cast<kfd::WaitEvents*>(arg));
      case kfd::kDestroyQueue: return destroy_queue(static_cast<kfd::DestroyQueue*>(arg)->queue_id);
      default: break;
    }
    const std::lock_guard lock(card_.mutex);
    switch (request) {
      case kfd::kAcquireVm: return acquire_vm(*static_cast<kfd::AcquireVm*>(arg));
      case kfd::kAllocMemory: return alloc(*static_cast<kfd::AllocMemory*>(arg));
      case kfd::kFreeMemory: return free(static_cast<kfd::FreeMemory*>(arg)->handle);
      case kfd::kMapMemory: return map(*static_cast<kfd::MapMemory*>(arg));
      case kfd::kUnmapMemory: return unmap(*static_cast<kfd::MapMemory*>(arg));
      case kfd::kCreateQueue: return create_queue(*static_cast<kfd::CreateQueue*>(arg));
      case kfd::kAvailableMemory:
        static_cast<kfd::AvailableMemory*>(arg)->available = card_.vram_bytes() - card_.vram_used();
        return 0;
      default: std::fprintf(stderr, "amd_sim: KFD: ioctl %08x is not known\n", request); return EINVAL;
    }
  }

 private:
  // A process has one address space on a GPU, which belongs to one file of DRM.
  int acquire_vm(const kfd::AcquireVm& a) {
    const int fd = static_cast<int>(a.drm_fd);
    if (a.gpu_id != kGpuId || !drm_driver::has(fd)) return EINVAL;
    if (vm_fd_ >= 0 && vm_fd_ != fd) return EBUSY;
    vm_fd_ = fd;
    return 0;
  }
  int alloc(kfd::AllocMemory& a) {
    const u32 heaps = a.flags & (kfd::kVram | kfd::kGtt);
    if (vm_fd_ < 0 || a.gpu_id != kGpuId || a.size == 0 || a.size % kfd::kPageBytes != 0 ||
        a.va % kfd::kPageBytes != 0 || a.va >> kfd::kAddressBits != 0 ||
        (heaps != u32{kfd::kVram} && heaps != u32{kfd::kGtt}))
      return EINVAL;
    const auto offset = card_.take(a.size, heaps == kfd::kVram);
    if (!offset) return ENOMEM;
    a.handle = next_handle_++, a.mmap_offset = *offset;
    objects_[a.handle] = {a.va, a.size, *offset, a.flags};
    return 0;
  }
  int free(u64 handle) {
    const auto it = objects_.find(handle);
    if (it == objects_.end()) return EINVAL;
    const Object& object = it->second;
    if (object.host != nullptr) return EBUSY;
    card_.give_back(object.offset, object.bytes, (object.flags & kfd::kVram) != 0);
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
    object->host = card_.map(object->offset, object->bytes);
    if (object->host == nullptr) return ENOMEM;
    a.n_done = 1;
    machine_->memory.add({"object " + std::to_string(a.handle), object->va, object->bytes,
                          static_cast<std::uint8_t*>(object->host), (object->flags & kfd::kWritable) != 0,
                          (object->flags & kfd::kExecutable) != 0});
    return 0;
  }
  int unmap(kfd::MapMemory& a) {
    Object* object = of_map(a);
    if (object == nullptr || object->host == nullptr) return EINVAL;
    machine_->forget(object->va, object->bytes);
    munmap(object->host, object->bytes);
    object->host = nullptr, a.n_done = 1;
    return 0;
  }

  int create_event(kfd::CreateEvent& a) {
    const std::lock_guard lock(events_);
    a.event_id = ++n_events_;
    event_list_[a.event_id] = {a.type, false, 0};
    return 0;
  }
  int destroy_event(u32 id) {
    const std::lock_guard lock(events_);
    return event_list_.erase(id) == 1 ? 0 : EINVAL;
  }
  int wait_events(kfd::WaitEvents& a) {
    const std::lock_guard lock(events_);
    a.result = kfd::kWaitTimeout;
    auto* list = reinterpret_cast<kfd::EventData*>(a.events);
    for (u32 k = 0; k < a.n_events; ++k) {
      const auto event = event_list_.find(list[k].event_id);
      if (event == event_list_.end()) return EINVAL;
      if (!event->second.is_set) continue;
      if (event->second.type == kfd::kEventMemory) {
        list[k].gpu_id = kGpuId, list[k].va = event->second.va, list[k].not_present = 1;
      } else {
        list[k].imprecise = kGpuId;  // the word of a hardware exception's gpu_id
      }
      a.result = kfd::kWaitDone;
    }
    return 0;
  }
  void tell(const Fault& fault) {
    const std::lock_guard lock(events_);
    const u32 type = fault.code == kMemoryFault ? kfd::kEventMemory : kfd::kEventHardware;
    for (auto& [id, event] : event_list_)
      if (event.type == type) event = {type, true, fault.va};
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
  // The firmware finds an AQL queue's other words from where its rptr lies.
  bool has_aql_words(const kfd::CreateQueue& a) const {
    if (a.type != kfd::kQueueAql) return true;
    const u64 first = a.rptr - offsetof(kfd::AqlWords, rptr);
    if (!holds(first, sizeof(kfd::AqlWords), kOfTheHost, "the words of an AQL queue")) return false;
    const auto* words = reinterpret_cast<const kfd::AqlWords*>(
        machine_->memory.at(first, sizeof(kfd::AqlWords), false, "AQL words", 0));
    return words->rptr_offset == offsetof(kfd::AqlWords, rptr) && words->last_cu == kCus - 1 &&
           (words->properties & kfd::kAqlPointersOf64Bits) != 0 && a.wptr == first + offsetof(kfd::AqlWords, wptr);
  }
  int create_queue(kfd::CreateQueue& a) {
    constexpr auto kSave = kfd::save_area_of(kCus);
    if ((a.type != kfd::kQueuePm4 && a.type != kfd::kQueueAql) || a.gpu_id != kGpuId || a.ring_bytes < 1024 ||
        (a.ring_bytes & (a.ring_bytes - 1)) != 0 || a.percentage > kfd::kMostPercentage ||
        a.priority > kfd::kMostPriority || a.eop_bytes != kfd::kEopBytes ||
        a.ctl_stack_bytes != kSave.ctl_stack_bytes || a.ctx_save_bytes != kSave.ctx_save_bytes)
      return EINVAL;
    if (!holds(a.ring, a.ring_bytes, kOfTheHost, "the ring") || !holds(a.rptr, 8, kOfTheHost, "rptr") ||
        !holds(a.wptr, 8, kOfTheHost, "wptr") || !holds(a.eop, a.eop_bytes, kfd::kWritable, "the end of pipe") ||
        !holds(a.ctx_save, kSave.buffer_bytes, kfd::kWritable, "the save area") || !has_aql_words(a))
      return EINVAL;
    const u32 id = n_queues_++ % (kfd::kDoorbellBytes / sizeof(u64));
    if (doorbells_ == nullptr)
      doorbells_ = static_cast<std::uint8_t*>(
          mmap(nullptr, kfd::kDoorbellBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, kDoorbells));
    HardwareQueue::Setup setup;
    setup.kind = a.type == kfd::kQueueAql ? "aql" : "pm4";
    setup.ring = {a.ring, a.ring_bytes / 4, a.rptr, a.wptr};
    setup.doorbell = reinterpret_cast<std::atomic<u64>*>(doorbells_ + sizeof(u64) * id);
    setup.on_fault = [this](const Fault& fault) { tell(fault); };
    a.doorbell_offset = kDoorbells + sizeof(u64) * id, a.queue_id = id;
    queues_[id] = std::make_unique<HardwareQueue>(*machine_, std::move(setup));
    return 0;
  }
  int destroy_queue(u32 id) {
    std::unique_ptr<HardwareQueue> queue;
    {
      const std::lock_guard lock(card_.mutex);
      const auto it = queues_.find(id);
      if (it == queues_.end()) return EINVAL;
      queue = std::move(it->second);
      queues_.erase(it);
    }
    return 0;
  }

  Card& card_ = Card::get();
  std::mutex files_, events_;  // of the members below each
  int file_ = -1;
  std::set<int> fds_;
  int vm_fd_ = -1;

  struct Event {
    u32 type;
    bool is_set;
    u64 va;
  };
  u32 n_events_ = 0;
  std::map<u32, Event> event_list_;

  std::unique_ptr<Machine> machine_;
  u64 next_handle_ = 1;
  u32 n_queues_ = 0;
  std::uint8_t* doorbells_ = nullptr;
  std::map<u64, Object> objects_;
  std::map<u32, std::unique_ptr<HardwareQueue>> queues_;
};

Kfd& driver() {
  static Kfd* const kKfd = new Kfd;  // lives as long as the queues' threads
  return *kKfd;
}

}  // namespace

namespace kfd_driver {
std::optional<int> open(const std::string& path) {
  return driver().open(path);
}
bool has(int fd) {
  return driver().has(fd);
}
void close(int fd) {
  driver().close(fd);
}
int control(unsigned request, void* arg) {
  return driver().control(request, arg);
}
}  // namespace kfd_driver

}  // namespace amd_sim
