// amdgpu at its render node, /dev/dri/renderD*: an open file, which has its own address space on the device.
// Thread rule: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "kernel/zrt_file.h"
#include "ring/amd/drm_abi.h"
#include "zinc_rt/status.h"

namespace zinc_rt::ring {

class DrmConnection {
 public:
  // Opens the first amdgpu node whose device this build has kernels for. `tier` begins messages. Errors: kUnavailable
  // with what is missing.
  static Result<std::unique_ptr<DrmConnection>> open(std::string_view tier);
  ~DrmConnection();
  DrmConnection(const DrmConnection&) = delete;
  DrmConnection& operator=(const DrmConnection&) = delete;

  int fd() const { return fd_; }
  std::string_view tier() const { return tier_; }
  kernel::Target target() const { return target_; }
  const drm::DeviceInfo& device() const { return device_; }
  const drm::EngineInfo& compute() const { return compute_; }
  // Errors: the attempted action and the kernel's words; kExhausted for memory.
  Status control(unsigned request, void* argument, std::string_view attempt) const;
  // Fills in what this kernel knows. The rest of `result` is unchanged.
  template <class T>
  Status ask(drm::Query query, T& result, drm::u32 selector = 0) const {
    drm::Info info{reinterpret_cast<drm::u64>(&result), sizeof(T), query, {selector, 0, 0, 0}};
    return control(drm::kInfo, &info, "INFO");
  }
  // Errors: kInternal if the device could not read or write some address.
  Status check_faults() const;

 private:
  DrmConnection(std::string_view tier, int fd) : tier_(tier), fd_(fd) {}
  Status identify();

  std::string tier_;
  int fd_;
  kernel::Target target_{};
  drm::DeviceInfo device_{};
  drm::EngineInfo compute_{};
};

}  // namespace zinc_rt::ring
