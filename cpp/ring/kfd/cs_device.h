// CsDevice is a GPU that is used through its render node (/dev/dri/renderD*). The driver runs buffers of packets in its
// own queues (AMDGPU_CS), so each submission is a system call.
#pragma once

#include "ring/amd/drm_device.h"

namespace zinc_rt::ring {

class CsDevice final : public DrmDevice {
 public:
  static Result<std::unique_ptr<AmdDevice>> make();
  ~CsDevice() override;

  Result<std::unique_ptr<PacketPath>> open_path() override;
  HostWrites host_writes() const override { return HostWrites::kDriver; }
  Status check() override;
  std::string describe() const override;

 private:
  friend class CsPath;
  explicit CsDevice(std::unique_ptr<DrmConnection> drm) : DrmDevice(std::move(drm), Mappings::kOfTheDriver) {}
  // Submits packets to the driver and returns the submission's handle. Errors: kInternal if the driver refuses, which
  // it does after a reset of the device.
  Result<std::uint64_t> run(std::uint64_t at, std::uint32_t n_dwords);
  void wait(std::uint64_t handle) const;

  drm::u32 context_ = 0;                      // 0: not created
  std::vector<drm::BoListEntry> objects_;     // the live buffer objects, which the driver wants with each submission
  std::uint64_t listed_ = ~std::uint64_t{0};  // the value of n_changes() when objects_ was filled
};

}  // namespace zinc_rt::ring
