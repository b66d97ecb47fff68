#include "ring/umq/umq_device.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"
#include "ring/amd/doorbell_path.h"

namespace zinc_rt::ring {
namespace {

using namespace drm;  // NOLINT: the driver's own names

constexpr u32 kRingBytes = 64 << 10;
constexpr u32 kDoorbellSlot = 4;  // the index of a 64-bit word in the doorbell page; any index works
constexpr const char* kParameter = "/sys/module/amdgpu/parameters/user_queue";

// Each row names a firmware and the oldest version with which kernel 6.16 supports user queues on gfx12.
struct FirmwareRow {
  Firmware firmware;
  const char* name;
  u32 least;
};
constexpr FirmwareRow kFirmwares[] = {{kMe, "ME", 2780}, {kPfp, "PFP", 2840}, {kMec, "MEC", 3050}, {kMes, "MES", 123}};
constexpr u32 kMesVersionMask = 0xFFF;

// Returns the value of the module's parameter; empty if this kernel has no such parameter.
std::string read_parameter() {
  const int fd = ::open(kParameter, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[16] = {};
  const auto n = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  std::string value(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!value.empty() && value.back() == '\n') value.pop_back();
  return value;
}

// A user-mode queue that the driver has created. The destructor frees it.
class UmqPath final : public PacketPath {
 public:
  UmqPath(const DrmConnection& drm, u32 id, const DoorbellPath& queue) : drm_(drm), id_(id), queue_(queue) {}
  ~UmqPath() override {
    Userq free{};
    free.in.op = kUserqFree, free.in.id = id_;
    static_cast<void>(drm_.control(kUserq, &free, "USERQ"));
  }
  bool has_space() const override { return queue_.has_space(); }
  Status submit(u64 at, u32 n_dwords) override { return queue_.submit(at, n_dwords); }
  std::string state() const override { return queue_.state(); }

 private:
  const DrmConnection& drm_;
  u32 id_;
  DoorbellPath queue_;
};

}  // namespace

std::string why_no_user_queue(const DrmConnection& drm) {
  const bool has_mask = (drm.device().userq_ip_mask >> kCompute & 1) != 0;
  if (has_mask && drm.compute().n_user_slots != 0) return {};
  const std::string option = read_parameter();
  if (option.empty()) return "this kernel has no user queues: 6.16 or newer has, with amdgpu.user_queue=1";
  std::vector<std::string> reasons;
  if (option != "1" && option != "2")
    reasons.push_back(
        fmt::format("the module's option amdgpu.user_queue is {}, 1 is wanted (on the kernel's command "
                    "line, or in /etc/modprobe.d)",
                    option));
  for (const FirmwareRow& row : kFirmwares) {
    FirmwareInfo firmware{};
    if (!drm.ask(drm::kFirmware, firmware, row.firmware)) continue;
    const u32 version = row.firmware == kMes ? firmware.version & kMesVersionMask : firmware.version;
    if (version < row.least)
      reasons.push_back(fmt::format("the firmware {} has version {}, at least {} is wanted (a newer linux-firmware)",
                                    row.name, version, row.least));
  }
  if (reasons.empty()) reasons.emplace_back("neither its option nor the firmware's versions say why");
  return fmt::format("the kernel gives compute no user queues (mask {:#x}, {}): {}", drm.device().userq_ip_mask,
                     drm.compute().n_user_slots == kNotTold ? "slots not told" : "no slot", fmt::join(reasons, "; "));
}

Result<std::unique_ptr<AmdDevice>> UmqDevice::make() {
  ZRT_TRY(auto drm, DrmConnection::open("t2"));
  if (const auto why = why_no_user_queue(*drm); !why.empty()) return fail(StatusCode::kUnavailable, "[t2] {}", why);
  return std::unique_ptr<AmdDevice>(new UmqDevice(std::move(drm)));
}

UmqDevice::~UmqDevice() {
  for (const Memory* memory : {&ring_, &wptr_, &rptr_, &end_of_pipe_})
    if (memory->host != nullptr) free(*memory);
  if (doorbells_.host != nullptr) free_object(doorbells_);
}

// Creates the queue. Each of the queue's words is in a page of its own, because the kernel requires this.
Result<std::unique_ptr<PacketPath>> UmqDevice::open_path() {
  ZRT_TRY(ring_, alloc(kRingBytes, Domain::kHost));
  ZRT_TRY(wptr_, alloc(kPageBytes, Domain::kHost));
  ZRT_TRY(rptr_, alloc(kPageBytes, Domain::kDevice));
  ZRT_TRY(end_of_pipe_, alloc(kPageBytes, Domain::kDevice));
  ZRT_TRY(doorbells_, alloc_object(kPageBytes, kDoorbell, 0));
  std::memset(wptr_.host, 0, wptr_.bytes);
  std::memset(rptr_.host, 0, rptr_.bytes);
  UserqMqd mqd{end_of_pipe_.va};
  Userq create{};
  create.in.op = kUserqCreate, create.in.engine = kCompute;
  create.in.doorbell = static_cast<u32>(doorbells_.handle), create.in.doorbell_slot = kDoorbellSlot;
  create.in.ring = ring_.va, create.in.ring_bytes = kRingBytes;
  create.in.rptr = rptr_.va, create.in.wptr = wptr_.va;
  create.in.mqd = reinterpret_cast<u64>(&mqd), create.in.mqd_bytes = sizeof(mqd);
  ZRT_CHECK_OK(drm().control(kUserq, &create, "USERQ"));
  const DoorbellPath::Memory memory{{reinterpret_cast<u32*>(ring_.host), kRingBytes / sizeof(u32)},
                                    reinterpret_cast<Word*>(rptr_.host),
                                    reinterpret_cast<Word*>(wptr_.host),
                                    reinterpret_cast<Word*>(doorbells_.host) + kDoorbellSlot};
  return std::make_unique<UmqPath>(drm(), create.id, DoorbellPath(memory, kUserPm4Format));
}

std::string UmqDevice::describe() const {
  const auto have = memory();
  return fmt::format("{}, {} compute units, {} MiB, a user queue", to_string(target()), drm().device().n_cus,
                     (have ? have->total : 0) >> 20);
}

}  // namespace zinc_rt::ring
