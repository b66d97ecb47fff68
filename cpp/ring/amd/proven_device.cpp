#include "ring/amd/proven_device.h"

#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {

Result<ProvenDevice> ProvenDevice::make(std::unique_ptr<AmdDevice> device, std::chrono::milliseconds limit) {
  ProvenDevice proven(std::move(device));
  ZRT_TRY(proven.page_, proven.device_->alloc(PacketQueue::kPageBytes, AmdDevice::Domain::kHost));
  std::memset(proven.page_.host, 0, proven.page_.bytes);
  ZRT_TRY(auto path, proven.device_->open_path());
  proven.queue_ = std::make_unique<PacketQueue>(*proven.device_, std::move(path), proven.page_, limit);
  ZRT_CHECK_OK(proven.queue_->prove());
  return proven;
}

ProvenDevice::~ProvenDevice() {
  queue_.reset();
  if (device_ != nullptr && page_.host != nullptr) device_->free(page_);
}

}  // namespace zinc_rt::ring
