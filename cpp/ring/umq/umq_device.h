// UmqDevice is a GPU that is used through a user-mode queue of its render node (AMDGPU_USERQ). The process fills a ring
// and rings a doorbell, without a call of the kernel.
#pragma once

#include "ring/amd/drm_device.h"

namespace zinc_rt::ring {

// Returns why this device offers no user queue for compute, such as a missing module option or old firmware. Returns an
// empty text if it offers a user queue.
std::string why_no_user_queue(const DrmConnection& drm);

class UmqDevice final : public DrmDevice {
 public:
  static Result<std::unique_ptr<AmdDevice>> make();
  ~UmqDevice() override;

  Result<std::unique_ptr<PacketPath>> open_path() override;
  HostWrites host_writes() const override { return HostWrites::kPacket; }
  Status check() override { return drm().check_faults(); }
  std::string describe() const override;

 private:
  explicit UmqDevice(std::unique_ptr<DrmConnection> drm) : DrmDevice(std::move(drm), Mappings::kWaited) {}

  Memory ring_, wptr_, rptr_, end_of_pipe_, doorbells_;
};

}  // namespace zinc_rt::ring
