// amdgpu's render node of the tests, /dev/dri/renderD128: buffer objects and their addresses, contexts that run buffers
// of packets (AMDGPU_CS), user queues. Each file has an address space of its own. It takes only what the kernel takes,
// and what a device would leave undefined is a fault: its text goes to stderr, and the context or the file tells of it.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "amd_sim/cs_context.h"
#include "amd_sim/drivers.h"
#include "ring/amd/drm_abi.h"

namespace amd_sim {
namespace {

namespace drm = zinc_rt::ring::drm;
using drm::u32;
using drm::u64;

constexpr u32 kOfTheHost = drm::kCoherent | drm::kUncached;
constexpr u32 kSlots = 2;  // of user queues
constexpr const char* kParameter = "/sys/module/amdgpu/parameters/user_queue";

class File {
 public:
  File() : machine_(card_.make_machine()) {}
  ~File() {
    queues_.clear();
    contexts_.clear();
    const std::lock_guard lock(card_.mutex);
    for (auto& [handle, object] : objects_) give_back(object);
  }

  int control(unsigned request, void* arg) {
    // These wait, for threads that want the card.
    if (request == drm::kWaitCs) return wait_cs(*static_cast<drm::WaitCs*>(arg));
    if (request == drm::kContext) return context(*static_cast<drm::Context*>(arg));
    if (request == drm::kUserq && static_cast<drm::Userq*>(arg)->in.op == drm::kUserqFree)
      return free_queue(static_cast<drm::Userq*>(arg)->in.id);
    const std::lock_guard lock(card_.mutex);
    switch (request) {
      case drm::kVersion: return version(*static_cast<drm::Version*>(arg));
      case drm::kInfo: return info(*static_cast<drm::Info*>(arg));
      case drm::kGemCreate: return create(*static_cast<drm::GemCreate*>(arg));
      case drm::kGemMmap: return window(*static_cast<drm::GemMmap*>(arg));
      case drm::kGemClose: return close(static_cast<drm::GemClose*>(arg)->handle);
      case drm::kGemVa: return change_mapping(*static_cast<drm::GemVa*>(arg));
      case drm::kSyncobjCreate: static_cast<drm::SyncobjCreate*>(arg)->handle = timeline_ = 1; return 0;
      case drm::kSyncobjDestroy: return 0;
      case drm::kTimelineWait: return wait_timeline(*static_cast<drm::TimelineWait*>(arg));
      case drm::kCs: return submit(*static_cast<drm::Cs*>(arg));
      case drm::kUserq: return create_queue(*static_cast<drm::Userq*>(arg));
      default: std::fprintf(stderr, "amd_sim: DRM: ioctl %08x is not known\n", request); return EINVAL;
    }
  }

 private:
  static int refuse(const std::string& what) {
    std::fprintf(stderr, "amd_sim: %s\n", what.c_str());
    return EINVAL;
  }
  static int version(drm::Version& a) {
    static constexpr char kName[] = "amdgpu";
    std::memcpy(reinterpret_cast<char*>(a.name), kName, std::min<u64>(a.name_bytes, sizeof(kName) - 1));
    a.name_bytes = sizeof(kName) - 1, a.major = 3, a.minor = 64;
    return 0;
  }

  static bool has_user_queues() {
    const std::string state = variable("ZRT_AMD_SIM_USERQ", "on");
    return state == "on" || state == "untold";
  }
  int info(const drm::Info& a) {
    const auto give = [&](const auto& value) {
      std::memcpy(reinterpret_cast<void*>(a.result), &value, std::min<std::size_t>(a.bytes, sizeof(value)));
      return 0;
    };
    const u32 wanted = a.selector[0];
    if (a.query == drm::kDeviceInfo) {
      drm::DeviceInfo device{};
      device.n_cus = kCus, device.va_begin = 0x200000, device.va_end = u64{1} << 47;
      device.userq_ip_mask = has_user_queues() ? 1u << drm::kCompute : 0;
      return give(device);
    }
    if (a.query == drm::kEngineInfo && wanted == drm::kCompute) {
      drm::EngineInfo engine{};
      engine.version = card_.engine_version(), engine.rings = 0xF;
      engine.n_user_slots = has_user_queues() ? kSlots : 0;
      const bool tells = variable("ZRT_AMD_SIM_USERQ", "on") != "untold";
      std::memcpy(reinterpret_cast<void*>(a.result), &engine,
                  std::min<std::size_t>(a.bytes, tells ? sizeof(engine) : offsetof(drm::EngineInfo, n_user_slots)));
      return 0;
    }
    if (a.query == drm::kFirmware) {
      const bool is_old = variable("ZRT_AMD_SIM_USERQ", "on") == "old";
      const u32 mes = is_old ? 122 : 147, others = is_old ? 2800 : 3600;
      const drm::FirmwareInfo firmware{wanted == drm::kMes ? mes : others, 0};
      return give(firmware);
    }
    if (a.query == drm::kMemory) {
      drm::MemoryInfo memory{};
      memory.vram =
          memory.visible_vram = {card_.vram_bytes(), card_.vram_bytes(), card_.vram_used(), card_.vram_bytes()};
      memory.gtt = {kGttBytes, kGttBytes, 0, kGttBytes};
      return give(memory);
    }
    if (a.query == drm::kFault) return give(fault_);
    return EINVAL;
  }

  int create(drm::GemCreate& a) {
    const u32 domain = static_cast<u32>(a.in.domains);
    if (a.in.bytes == 0 || a.in.bytes % drm::kPageBytes != 0 ||
        (domain != drm::kVram && domain != drm::kGtt && domain != drm::kDoorbell))
      return EINVAL;
    const auto offset = card_.take(a.in.bytes, domain == drm::kVram);
    if (!offset) return ENOMEM;
    DrmObject object{a.in.bytes, *offset, domain, static_cast<u32>(a.in.flags)};
    object.host = card_.map(*offset, a.in.bytes);
    if (object.host == nullptr) return ENOMEM;
    a.handle = next_handle_++;
    objects_[a.handle] = object;
    return 0;
  }
  int window(drm::GemMmap& a) {
    const auto it = objects_.find(a.handle);
    if (it == objects_.end()) return ENOENT;
    a.offset = it->second.offset;
    return 0;
  }
  void give_back(DrmObject& object) {
    if (object.va != 0) unmap(object);
    munmap(object.host, object.bytes);
    card_.give_back(object.offset, object.bytes, object.domain == drm::kVram);
  }
  int close(u32 handle) {
    const auto it = objects_.find(handle);
    if (it == objects_.end()) return EINVAL;
    give_back(it->second);
    objects_.erase(it);
    return 0;
  }
  // A user queue's own memory may not go away before it.
  void unmap(DrmObject& object) {
    for (const auto& [id, queue] : queues_)
      for (const u64 va : {queue.ring.base, queue.ring.rptr, queue.ring.wptr})
        if (va >= object.va && va < object.va + object.bytes)
          lost_mapping_ = "memory of a user queue at " + std::to_string(va) + " was unmapped while it lives";
    machine_->forget(object.va, object.bytes);
    object.va = 0;
  }
  int change_mapping(const drm::GemVa& a) {
    const auto it = objects_.find(a.handle);
    if (it == objects_.end()) return ENOENT;
    DrmObject& object = it->second;
    if (a.point != 0 && a.syncobj != timeline_) return ENOENT;
    if (a.operation == drm::kUnmap) {
      if (object.va != a.va) return EINVAL;
      unmap(object);
      return 0;
    }
    constexpr u32 kUsual = drm::kReadable | drm::kWritable;
    if (a.operation != drm::kMap || object.va != 0 || a.va == 0 || a.va % drm::kPageBytes != 0 ||
        a.bytes != object.bytes || a.offset != 0 || (a.flags & kUsual) != kUsual || object.domain == drm::kDoorbell)
      return EINVAL;
    for (const auto& [handle, other] : objects_)
      if (other.va != 0 && a.va < other.va + other.bytes && other.va < a.va + a.bytes) return EINVAL;
    object.va = a.va;
    machine_->memory.add({"object " + std::to_string(a.handle), a.va, a.bytes, static_cast<std::uint8_t*>(object.host),
                          true, (a.flags & drm::kExecutable) != 0});
    mapped_point_ = a.point == 0 ? ~u64{0} : a.point;
    return 0;
  }
  int wait_timeline(const drm::TimelineWait& a) {
    if (a.n_handles != 1 || *reinterpret_cast<const u32*>(a.handles) != timeline_) return ENOENT;
    waited_point_ = *reinterpret_cast<const u64*>(a.points);
    return 0;
  }

  void tell(const Fault& fault) {
    if (fault.code == kMemoryFault) fault_ = {fault.va, 1, 0};
  }
  int context(drm::Context& a) {
    if (a.in.op == drm::kContextAlloc) {
      const u32 id = ++n_contexts_;
      contexts_[id] = std::make_unique<CsContext>(*machine_, objects_, [this](const Fault& fault) { tell(fault); });
      a.id = id;
      return 0;
    }
    const auto it = contexts_.find(a.in.id);
    if (it == contexts_.end()) return EINVAL;
    if (a.in.op == drm::kContextState) {
      const u64 flags = it->second->is_lost ? drm::kWasReset | drm::kGuilty : 0;
      a = {};
      a.state.flags = flags;
    } else if (a.in.op == drm::kContextFree) {
      contexts_.erase(it);
    } else {
      return EINVAL;
    }
    return 0;
  }
  // Whether a file's object holds these bytes, and if it is of the host, no cache lies between.
  bool holds(u64 va, u64 bytes, const char* what) const {
    for (const auto& [handle, object] : objects_) {
      if (object.va == 0 || va < object.va || va + bytes > object.va + object.bytes) continue;
      if (object.domain == drm::kVram || (object.flags & kOfTheHost) == kOfTheHost) return true;
      std::fprintf(stderr, "amd_sim: %s has memory of the host without the flags %08x\n", what,
                   kOfTheHost & ~object.flags);
      return false;
    }
    std::fprintf(stderr, "amd_sim: %s is in no memory that is mapped to the GPU\n", what);
    return false;
  }
  int submit(drm::Cs& a) {
    const auto it = contexts_.find(a.in.context);
    if (it == contexts_.end() || a.in.flags != 0) return EINVAL;
    if (it->second->is_lost) return ECANCELED;
    CsContext::Job job{};
    const auto* pointers = reinterpret_cast<const u64*>(a.in.chunks);
    for (u32 k = 0; k < a.in.n_chunks; ++k) {
      const auto& chunk = *reinterpret_cast<const drm::CsChunk*>(pointers[k]);
      if (chunk.id == drm::kChunkIb) {
        const auto& ib = *reinterpret_cast<const drm::CsIb*>(chunk.data);
        if (chunk.n_dwords * 4 != sizeof(ib) || ib.engine != drm::kCompute || ib.instance != 0 || ib.ring != 0)
          return EINVAL;
        if (ib.bytes == 0 || ib.bytes % 32 != 0 || ib.va % 32 != 0)
          return refuse("CS: a buffer of " + std::to_string(ib.bytes) + " bytes, a multiple of 32 is wanted");
        if ((ib.flags & drm::kIbSynchronizes) == 0) return refuse("CS: a buffer without EMIT_MEM_SYNC");
        if (!holds(ib.va, ib.bytes, "CS: the buffer of packets")) return EINVAL;
        job.va = ib.va, job.n_dwords = ib.bytes / 4;
      } else if (chunk.id == drm::kChunkBos) {
        const auto& list = *reinterpret_cast<const drm::BoList*>(chunk.data);
        if (chunk.n_dwords * 4 != sizeof(list) || list.entry_bytes != sizeof(drm::BoListEntry)) return EINVAL;
        const auto* entries = reinterpret_cast<const drm::BoListEntry*>(list.entries);
        for (u32 i = 0; i < list.n_entries; ++i) {
          if (!objects_.contains(entries[i].handle)) return ENOENT;
          job.listed.insert(entries[i].handle);
        }
      } else {
        return EINVAL;
      }
    }
    if (job.n_dwords == 0) return EINVAL;
    a.handle = it->second->add(std::move(job));
    return 0;
  }
  int wait_cs(drm::WaitCs& a) {
    const auto it = contexts_.find(a.in.context);
    if (it == contexts_.end() || a.in.engine != drm::kCompute) return EINVAL;
    a.is_busy = it->second->is_done(a.in.handle) ? 0 : 1;
    return 0;
  }

  int create_queue(drm::Userq& a) {
    const auto& in = a.in;
    if (in.op != drm::kUserqCreate || in.engine != drm::kCompute) return EINVAL;
    if (!has_user_queues()) return refuse("USERQ: not supported for this IP");
    const auto doorbell = objects_.find(in.doorbell);
    if (doorbell == objects_.end() || doorbell->second.domain != drm::kDoorbell ||
        in.doorbell_slot * sizeof(u64) >= doorbell->second.bytes)
      return refuse("USERQ: the doorbell is no object of the domain DOORBELL");
    if (in.mqd_bytes != sizeof(drm::UserqMqd) || in.ring_bytes < 256 || (in.ring_bytes & (in.ring_bytes - 1)) != 0)
      return EINVAL;
    const auto& mqd = *reinterpret_cast<const drm::UserqMqd*>(in.mqd);
    if (!holds(in.ring, in.ring_bytes, "USERQ: the ring") || !holds(in.rptr, drm::kPageBytes, "USERQ: rptr") ||
        !holds(in.wptr, drm::kPageBytes, "USERQ: wptr") || !holds(mqd.eop, drm::kPageBytes, "USERQ: the end of pipe"))
      return EINVAL;
    const u32 id = ++n_queues_;
    HardwareQueue::Setup setup;
    setup.kind = "userq";
    setup.ring = {in.ring, in.ring_bytes / 4, in.rptr, in.wptr};
    setup.doorbell = static_cast<std::atomic<u64>*>(doorbell->second.host) + in.doorbell_slot;
    setup.before = [this] {
      if (!lost_mapping_.empty()) throw Fault(kMemoryFault, lost_mapping_);
      if (mapped_point_ > waited_point_)
        throw Fault(kMemoryFault, "USERQ: a mapping was not waited for (point " + std::to_string(mapped_point_) +
                                      " of the timeline, " + std::to_string(waited_point_) + " was)");
    };
    setup.on_fault = [this](const Fault& fault) { tell(fault); };
    UserQueue& queue = queues_[id];
    queue.ring = setup.ring;
    queue.hardware = std::make_unique<HardwareQueue>(*machine_, std::move(setup));
    a.id = id;
    return 0;
  }
  int free_queue(u32 id) {
    std::unique_ptr<HardwareQueue> hardware;
    {
      const std::lock_guard lock(card_.mutex);
      const auto it = queues_.find(id);
      if (it == queues_.end()) return EINVAL;
      hardware = std::move(it->second.hardware);
      queues_.erase(it);
    }
    return 0;
  }

  struct UserQueue {
    Ring ring;
    std::unique_ptr<HardwareQueue> hardware;
  };
  Card& card_ = Card::get();
  std::unique_ptr<Machine> machine_;
  DrmObjects objects_;
  u32 next_handle_ = 1, n_contexts_ = 0, n_queues_ = 0, timeline_ = 0;
  u64 mapped_point_ = 0, waited_point_ = 0;
  std::string lost_mapping_;
  drm::FaultInfo fault_{};
  std::map<u32, std::unique_ptr<CsContext>> contexts_;
  std::map<u32, UserQueue> queues_;
};

struct Files {
  std::mutex mutex;
  std::map<int, std::shared_ptr<File>> by_fd;
};
Files& files() {
  static Files* const kFiles = new Files;
  return *kFiles;
}

}  // namespace

namespace drm_driver {
std::optional<int> open(const std::string& path) {
  if (path == kParameter) return text_file(variable("ZRT_AMD_SIM_USERQ", "on") == "off" ? "-1\n" : "1\n");
  if (!path.starts_with("/dev/dri/")) return std::nullopt;
  if (path != "/dev/dri/renderD128") return errno = ENOENT, -1;
  const int fd = dup(Card::get().memory_file());
  const std::lock_guard lock(files().mutex);
  files().by_fd[fd] = std::make_shared<File>();
  return fd;
}
bool has(int fd) {
  const std::lock_guard lock(files().mutex);
  return files().by_fd.contains(fd);
}
void close(int fd) {
  std::shared_ptr<File> file;  // ends after the lock: its queues' threads may be busy
  const std::lock_guard lock(files().mutex);
  if (const auto it = files().by_fd.find(fd); it != files().by_fd.end()) {
    file = std::move(it->second);
    files().by_fd.erase(it);
  }
}
int control(int fd, unsigned request, void* arg) {
  std::shared_ptr<File> file;
  {
    const std::lock_guard lock(files().mutex);
    const auto it = files().by_fd.find(fd);
    if (it == files().by_fd.end()) return EBADF;
    file = it->second;
  }
  return file->control(request, arg);
}
}  // namespace drm_driver

}  // namespace amd_sim
