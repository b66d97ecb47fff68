// KfdDevice is a GPU that is used through /dev/kfd, the kernel's compute driver. Memory comes from ioctl and mmap. The
// process itself fills a queue with PM4 or AQL packets, so a submission needs no system call. No AMD library is used.
#pragma once

#include <mutex>

#include "ring/amd/doorbell_path.h"
#include "ring/kfd/abi.h"
#include "ring/kfd/topology.h"

namespace zinc_rt::ring {

// The process's connection to the driver. All rings share it, and it stays open for the life of the process. The kernel
// keeps one address space per process and GPU, bound to the DRM file with which it was acquired. Thread rule: any
// thread.
class KfdConnection {
 public:
  // Returns the connection; the first call opens it. Errors: kUnavailable with what is missing and how to get it. The
  // next call then tries again.
  static Result<KfdConnection*> open();

  const kfd::Node& node() const { return node_; }
  int drm_fd() const { return drm_fd_; }
  // Calls ioctl. `attempt` names the action in error messages, which also have the kernel's words.
  Status control(unsigned request, void* argument, std::string_view attempt) const;
  // Returns the address of a queue's doorbell. The first call maps the page of doorbells.
  Result<AmdDevice::Word*> doorbell(std::uint64_t offset);

 private:
  KfdConnection() = default;
  ~KfdConnection();
  Status connect();

  int kfd_fd_ = -1, drm_fd_ = -1;
  kfd::Node node_;
  std::mutex mutex_;
  std::byte* doorbells_ = nullptr;
};

class KfdDevice final : public AmdDevice {
 public:
  // Opens the device. `type` is the type of the queue that open_path() creates: PM4 or AQL.
  static Result<std::unique_ptr<AmdDevice>> make(kfd::QueueType type);
  ~KfdDevice() override;

  Result<Memory> alloc(std::uint64_t bytes, Domain domain) override;
  void free(const Memory& memory) override;
  Result<DeviceMemory> memory() const override;
  Result<std::unique_ptr<PacketPath>> open_path() override;
  HostWrites host_writes() const override { return HostWrites::kRegisters; }
  Status check() override;
  kernel::Target target() const override { return target_; }
  std::string describe() const override;

 private:
  KfdDevice(KfdConnection& kfd, kernel::Target target, kfd::QueueType type) : kfd_(kfd), target_(target), type_(type) {}
  Result<std::uint32_t> create_event(kfd::EventType type) const;

  KfdConnection& kfd_;
  kernel::Target target_;
  kfd::QueueType type_;
  Memory ring_, words_, end_of_pipe_, save_area_;
  std::uint32_t memory_event_ = 0, hardware_event_ = 0;  // 0: not created
};

}  // namespace zinc_rt::ring
