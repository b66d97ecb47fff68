// DrmDevice is the memory part of a GPU that is used through its render node: GEM buffer objects, at device addresses
// chosen here. CsDevice and UmqDevice derive from it and add their ways to run packets.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <map>

#include "ring/amd/device.h"
#include "ring/amd/drm_connection.h"

namespace zinc_rt::ring {

// Hands out ranges of device addresses, each from the lowest gap that fits.
class AddressSpace {
 public:
  AddressSpace(std::uint64_t begin, std::uint64_t end) { gaps_[begin] = end - begin; }
  // Returns the address of a free range; 0 if no range is large enough.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment);
  void give_back(std::uint64_t va, std::uint64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> gaps_;  // key: address; value: bytes
};

class DrmDevice : public AmdDevice {
 public:
  Result<Memory> alloc(std::uint64_t bytes, Domain domain) override;
  void free(const Memory& memory) override;
  Result<DeviceMemory> memory() const override;
  kernel::Target target() const override { return drm_->target(); }

 protected:
  // Who waits until the device sees a new mapping. kWaited: this class. kOfTheDriver: the driver, before it runs a
  // submission.
  enum class Mappings : std::uint8_t { kWaited, kOfTheDriver };
  DrmDevice(std::unique_ptr<DrmConnection> drm, Mappings mappings);
  ~DrmDevice() override;

  const DrmConnection& drm() const { return *drm_; }
  // Allocates whole pages without a device address. Errors: kExhausted with both numbers.
  Result<Memory> alloc_object(std::uint64_t bytes, drm::u32 domain, drm::u32 flags);
  void free_object(const Memory& memory);
  // Returns the live objects that have an address. n_changes() grows whenever this set changes.
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
  drm::u32 timeline_ = 0;  // 0: not created
  std::uint64_t point_ = 0;
};

}  // namespace zinc_rt::ring
