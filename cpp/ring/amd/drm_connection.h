// DrmConnection is an open render node of amdgpu (/dev/dri/renderD*). Each open file has its own address space on the
// device.
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
  // Opens the first amdgpu node for whose device this build has kernels. `tier` begins error messages. Errors:
  // kUnavailable with what is missing.
  static Result<std::unique_ptr<DrmConnection>> open(std::string_view tier);
  ~DrmConnection();
  DrmConnection(const DrmConnection&) = delete;
  DrmConnection& operator=(const DrmConnection&) = delete;

  int fd() const { return fd_; }
  std::string_view tier() const { return tier_; }
  kernel::Target target() const { return target_; }
  const drm::DeviceInfo& device() const { return device_; }
  const drm::EngineInfo& compute() const { return compute_; }
  // Calls ioctl. `attempt` names the action in error messages, which also have the kernel's words. Errors: kExhausted
  // if memory was missing; else kUnavailable.
  Status control(unsigned request, void* argument, std::string_view attempt) const;
  // Sends a query to the driver, which writes the answer to `result`. An older kernel may know fewer members; the other
  // members of `result` stay unchanged.
  template <class T>
  Status ask(drm::Query query, T& result, drm::u32 selector = 0) const {
    drm::Info info{reinterpret_cast<drm::u64>(&result), sizeof(T), query, {selector, 0, 0, 0}};
    return control(drm::kInfo, &info, "INFO");
  }
  // Returns an error if the device could not read or write some address. Errors: kInternal.
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
