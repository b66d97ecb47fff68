#include "ring/kfd/cs_device.h"

#include <chrono>

#include "base/error.h"

namespace zinc_rt::ring {

using namespace drm;  // NOLINT: the driver's own names

// Submits packets through the driver's own queues. The destructor waits for the last submission, because its memory is
// freed afterwards.
class CsPath final : public PacketPath {
 public:
  explicit CsPath(CsDevice& device) : device_(device) {}
  ~CsPath() override {
    if (handle_ != 0) device_.wait(handle_);
  }
  bool has_space() const override { return true; }  // the driver blocks if its queue is full
  Status submit(u64 at, u32 n_dwords) override {
    ZRT_TRY(handle_, device_.run(at, n_dwords));
    return {};
  }
  std::string state() const override { return fmt::format("submission {}", handle_); }

 private:
  CsDevice& device_;
  u64 handle_ = 0;
};

Result<std::unique_ptr<AmdDevice>> CsDevice::make() {
  ZRT_TRY(auto drm, DrmConnection::open("t1"));
  auto device = std::unique_ptr<CsDevice>(new CsDevice(std::move(drm)));
  Context context{};
  context.in.op = kContextAlloc;
  ZRT_CHECK_OK(device->drm().control(kContext, &context, "CTX"));
  device->context_ = context.id;
  return std::unique_ptr<AmdDevice>(std::move(device));
}

CsDevice::~CsDevice() {
  Context context{};
  context.in.op = kContextFree, context.in.id = context_;
  if (context_ != 0) static_cast<void>(drm().control(kContext, &context, "CTX"));
}

Result<std::unique_ptr<PacketPath>> CsDevice::open_path() {
  return std::make_unique<CsPath>(*this);
}

Result<std::uint64_t> CsDevice::run(std::uint64_t at, std::uint32_t n_dwords) {
  if (listed_ != n_changes()) {
    objects_.clear();
    for (const auto& [va, handle] : mapped()) objects_.push_back({handle, 0});
    listed_ = n_changes();
  }
  CsIb ib{0, kIbSynchronizes, at, n_dwords * u32{sizeof(u32)}, kCompute, 0, 0};
  BoList list{~u32{0}, ~u32{0}, static_cast<u32>(objects_.size()), sizeof(BoListEntry),
              reinterpret_cast<u64>(objects_.data())};
  const CsChunk chunks[] = {{kChunkIb, sizeof(ib) / sizeof(u32), reinterpret_cast<u64>(&ib)},
                            {kChunkBos, sizeof(list) / sizeof(u32), reinterpret_cast<u64>(&list)}};
  const u64 pointers[] = {reinterpret_cast<u64>(&chunks[0]), reinterpret_cast<u64>(&chunks[1])};
  Cs cs{};
  cs.in = {context_, 0, std::size(pointers), 0, reinterpret_cast<u64>(pointers)};
  if (const auto status = drm().control(kCs, &cs, "CS"); !status) {
    ZRT_CHECK_OK(check());
    return fail(StatusCode::kInternal, "{}", status.error().message);
  }
  return cs.handle;
}

void CsDevice::wait(std::uint64_t handle) const {
  constexpr auto kLimit = std::chrono::seconds(2);
  const auto until = std::chrono::steady_clock::now().time_since_epoch() + kLimit;
  WaitCs wait{};
  wait.in = {handle, static_cast<u64>(std::chrono::nanoseconds(until).count()), kCompute, 0, 0, context_};
  static_cast<void>(drm().control(kWaitCs, &wait, "WAIT_CS"));
}

Status CsDevice::check() {
  ZRT_CHECK_OK(drm().check_faults());
  Context context{};
  context.in.op = kContextState, context.in.id = context_;
  ZRT_CHECK_OK(drm().control(kContext, &context, "CTX"));
  if ((context.state.flags & (kWasReset | kMemoryLost | kGuilty)) == 0) return {};
  return fail(StatusCode::kInternal, "[t1] the device is lost: the kernel has reset it{}{}",
              (context.state.flags & kGuilty) != 0 ? ", for work of this process" : "",
              (context.state.flags & kMemoryLost) != 0 ? ", and its memory is lost" : "");
}

std::string CsDevice::describe() const {
  const auto have = memory();
  return fmt::format("{}, {} compute units, {} MiB, AMDGPU_CS", to_string(target()), drm().device().n_cus,
                     (have ? have->total : 0) >> 20);
}

}  // namespace zinc_rt::ring
