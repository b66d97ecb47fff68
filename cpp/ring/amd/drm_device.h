// Memory of an AMD GPU through its render node: GEM buffer objects, at addresses chosen here. Each tier adds its own
// way to run packets.
// Thread rule: as Ring.
#pragma once

#include <map>

#include "ring/amd/device.h"
#include "ring/amd/drm_connection.h"

namespace zinc_rt::ring {

// Addresses on the device: the lowest gap that fits.
class AddressSpace {
 public:
  AddressSpace(std::uint64_t begin, std::uint64_t end) { gaps_[begin] = end - begin; }
  // Returns the address of a free range; 0 if there is none.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment);
  void give_back(std::uint64_t va, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> gaps_;  // bytes, by address
};

class DrmDevice : public AmdDevice {
 public:
  Result<Memory> alloc(std::uint64_t bytes, Domain domain) override;
  void free(const Memory& memory) override;
  Result<DeviceMemory> memory() const override;
  kernel::Target target() const override { return drm_->target(); }

 protected:
  // Whether to wait for a mapping. For a submission through the driver, the driver waits.
  enum class Mappings : std::uint8_t { kWaited, kOfTheDriver };
  DrmDevice(std::unique_ptr<DrmConnection> drm, Mappings mappings);
  ~DrmDevice() override;

  const DrmConnection& drm() const { return *drm_; }
  // Allocates whole pages without a device address. Errors: kExhausted with both numbers.
  Result<Memory> alloc_object(std::uint64_t bytes, drm::u32 domain, drm::u32 flags);
  void free_object(const Memory& memory);
  // Live objects that have an address. `changes` grows whenever this set changes.
  const std::map<std::uint64_t, drm::u32>& mapped() const { return mapped_; }
  std::uint64_t n_changes() const { return n_changes_; }

 private:
  Status map(Memory& memory, Domain domain);
  Status change_mapping(const Memory& memory, drm::VaOperation operation, drm::u32 flags);

  std::unique_ptr<DrmConnection> drm_;
  Mappings mappings_;
  AddressSpace addresses_;
  std::map<std::uint64_t, drm::u32> mapped_;  // key: address; value: handle
  std::uint64_t n_changes_ = 0;
  drm::u32 timeline_ = 0;  // 0: not made
  std::uint64_t point_ = 0;
};

}  // namespace zinc_rt::ring
