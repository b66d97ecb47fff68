// Device is one open Vulkan device: memory by address, kernels as pipelines, and recorded commands. It knows neither
// models nor ops.
// Thread rule: one thread at a time. Memory, pipelines and commands belong to the device and are freed with it at the
// latest. It serves one model at a time. The next model should use the same object, because it may need the same
// pipelines.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/heap.h"
#include "vulkan/device/device_list.h"
#include "vulkan/device/modules.h"
#include "vulkan/device/recorder.h"

namespace zinc_rt::vulkan {

struct Buffer {
  VkBuffer handle = nullptr;
  std::uint64_t address = 0, bytes = 0;
  std::byte* host = nullptr;  // null if the host cannot access it
};

// Identifies a pipeline: a kernel's module, and its specialization constants.
struct KernelKey {
  std::string_view name;  // the kernel's name in kernels/vulkan, without the form of fma
  std::vector<std::uint32_t> constants;
  bool operator==(const KernelKey&) const = default;
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const DeviceInfo& info, const Faults& faults = {});
  ~Device();
  Device(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  const Faults& faults() const { return faults_; }

  // Allocates a buffer. Errors: kExhausted with the bytes; kUnavailable for more than the device allocates at once.
  Result<Buffer> allocate(std::uint64_t bytes, Heap heap);
  // Frees all memory and commands; no command may be running. Pipelines stay.
  Status free_all();
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }  // sum over the buffers of allocate()
  // needs_staging() returns whether write() and read() must copy through host memory. use_staging() provides that
  // memory, which is kHostVisible; call it once.
  bool needs_staging() const;
  void use_staging(const Buffer& buffer) { staging_ = buffer; }
  // Copy data between host and device, between submissions. REQUIRES: the range lies within the buffer.
  Status write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> bytes);
  Status read(const Buffer& from, std::uint64_t offset, std::span<std::byte> bytes);
  struct Copy {
    VkBuffer from, to;
    VkBufferCopy part;
  };
  Status copy(std::span<const Copy> copies);

  // Sets the form of fma for later calls of make_pipelines() and pipeline().
  void use(Fma form) { form_ = form; }
  Fma fma() const { return form_; }
  // Enables or disables kernels with cooperative matrices, which are disabled at first. REQUIRES: info().has_matrices.
  void use_matrices(bool yes) { uses_matrices_ = yes; }
  bool uses_matrices() const { return uses_matrices_ || faults_.matrices_by_hand; }
  // Makes the pipelines of the kernels that have none yet, on several threads. The code that the driver compiles is
  // kept in a file in the user's cache folder.
  Status make_pipelines(std::span<const KernelKey> keys);
  // Returns the pipeline of a kernel. REQUIRES: make_pipelines() was called with the key.
  VkPipeline pipeline(const KernelKey& key) const;

  // Records commands. The commands may be submitted many times, but must have ended before they are submitted again.
  // They start after all earlier submissions have ended. When they have ended, the host sees what they wrote.
  Result<VkCommandBuffer> record(const std::function<void(Recorder&)>& commands);
  // Frees recorded commands. REQUIRES: they are not running.
  void free(VkCommandBuffer commands) { api_->FreeCommandBuffers(device_, pool_, 1, &commands); }
  // submit() queues commands to run one after another. wait() waits for all submitted commands. run() does both.
  // Errors: kInternal; the device is then lost.
  Status submit(std::span<const VkCommandBuffer> commands);
  Status wait();
  Status run(std::span<const VkCommandBuffer> commands);

  // KernelTime is the time of a kernel with its constants ("linear.guarded 10 20 1"), summed over its dispatches in the
  // last run(). It is measured only if Faults::timed is set.
  struct KernelTime {
    std::string kernel;
    std::uint32_t n = 0;
    double seconds = 0;
  };
  std::vector<KernelTime> kernel_times() const;

 private:
  explicit Device(const DeviceInfo& info, const Faults& faults) : info_(info), faults_(faults) {}
  Status make();
  Status make_pool();
  void free_memory();
  Result<std::uint32_t> memory_type(std::uint32_t allowed, Heap heap) const;
  KernelKey in_form(const KernelKey& key) const;
  Result<VkPipeline> make_pipeline(const KernelKey& key) const;
  void open_cache();
  void keep_cache() const;
  struct Held {
    Buffer buffer;
    VkDeviceMemory memory = nullptr;
  };

  const Api* api_ = nullptr;
  DeviceInfo info_;
  Faults faults_;
  VkPhysicalDeviceMemoryProperties memory_{};
  VkDevice device_ = nullptr;
  VkQueue queue_ = nullptr;
  VkCommandPool pool_ = nullptr;
  VkSemaphore timeline_ = nullptr;
  std::uint64_t n_submitted_ = 0;
  VkPipelineLayout layout_ = nullptr;
  VkPipelineCache cache_ = nullptr;
  Fma form_ = Fma::kNative;
  bool uses_matrices_ = false;
  std::vector<std::pair<KernelKey, VkPipeline>> pipelines_;
  std::vector<Held> held_;
  Buffer staging_;
  std::optional<Stopwatch> stopwatch_;
  std::uint64_t allocated_bytes_ = 0;
};

}  // namespace zinc_rt::vulkan
