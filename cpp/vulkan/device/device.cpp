#include "vulkan/device/device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace zinc_rt::vulkan {
namespace {

Status check(VkResult result, std::string_view what) {
  if (result == VK_SUCCESS) return {};
  return fail(StatusCode::kInternal, "[vulkan] {}: {}", what, to_string(result));
}

// The properties that a memory type must have for a heap (must), and the properties that are preferred (should).
struct HeapFlags {
  VkMemoryPropertyFlags must, should;
};
HeapFlags flags_of(Heap heap) {
  constexpr VkMemoryPropertyFlags kHost = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  switch (heap) {
    case Heap::kDeviceLocal: return {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
    case Heap::kBar: return {kHost, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    case Heap::kHostVisible: return {kHost, VK_MEMORY_PROPERTY_HOST_CACHED_BIT};
  }
  return {};
}
bool has_all(VkMemoryPropertyFlags flags, VkMemoryPropertyFlags wanted) {
  return (flags & wanted) == wanted;
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(const DeviceInfo& info, const Faults& faults) {
  auto device = std::unique_ptr<Device>(new Device(info, faults));
  ZRT_TRY(device->api_, load_api());
  ZRT_CHECK_OK(device->make());
  return device;
}

Status Device::make() {
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = info_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const Features features(info_);
  VkDeviceCreateInfo wanted{};
  wanted.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  wanted.pNext = &features.v10;
  wanted.queueCreateInfoCount = 1;
  wanted.pQueueCreateInfos = &queue;
  const char* const extensions[] = {kMatrixExtension};
  wanted.enabledExtensionCount = info_.has_matrices ? 1 : 0;
  wanted.ppEnabledExtensionNames = extensions;
  if (const auto result = api_->CreateDevice(info_.handle, &wanted, nullptr, &device_); result != VK_SUCCESS)
    return fail(StatusCode::kUnavailable, "[vulkan] {} cannot be opened: {}", info_.name, to_string(result));
  api_->GetDeviceQueue(device_, info_.queue_family, 0, &queue_);
  api_->GetPhysicalDeviceMemoryProperties(info_.handle, &memory_);

  ZRT_CHECK_OK(make_pool());
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  ZRT_CHECK_OK(check(api_->CreateSemaphore(device_, &semaphore, nullptr, &timeline_), "a timeline semaphore"));
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, kPushBytes};
  VkPipelineLayoutCreateInfo layout{};
  layout.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  ZRT_CHECK_OK(check(api_->CreatePipelineLayout(device_, &layout, nullptr, &layout_), "a pipeline layout"));
  if (faults_.timed) {
    ZRT_TRY(stopwatch_, Stopwatch::make(*api_, info_.handle, device_));
  }
  open_cache();
  return {};
}

Status Device::make_pool() {
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.queueFamilyIndex = info_.queue_family;
  return check(api_->CreateCommandPool(device_, &pool, nullptr, &pool_), "a command pool");
}

void Device::free_memory() {
  for (const Held& held : held_) {
    api_->DestroyBuffer(device_, held.buffer.handle, nullptr);
    api_->FreeMemory(device_, held.memory, nullptr);
  }
  held_.clear();
  staging_ = {};
  allocated_bytes_ = 0;
}

Status Device::free_all() {
  api_->DeviceWaitIdle(device_);
  free_memory();
  api_->DestroyCommandPool(device_, std::exchange(pool_, nullptr), nullptr);
  return make_pool();
}

Device::~Device() {
  if (device_ == nullptr) return;
  api_->DeviceWaitIdle(device_);
  for (const auto& [key, pipeline] : pipelines_) api_->DestroyPipeline(device_, pipeline, nullptr);
  free_memory();
  if (stopwatch_) stopwatch_->destroy(*api_, device_);
  if (cache_ != nullptr) api_->DestroyPipelineCache(device_, cache_, nullptr);
  if (layout_ != nullptr) api_->DestroyPipelineLayout(device_, layout_, nullptr);
  if (timeline_ != nullptr) api_->DestroySemaphore(device_, timeline_, nullptr);
  if (pool_ != nullptr) api_->DestroyCommandPool(device_, pool_, nullptr);
  api_->DestroyDevice(device_, nullptr);
}

Result<std::uint32_t> Device::memory_type(std::uint32_t allowed, Heap heap) const {
  const auto [must, should] = flags_of(heap);
  for (const auto wanted : {must | should, must})
    for (std::uint32_t i = 0; i < memory_.memoryTypeCount; ++i)
      if ((allowed >> i & 1u) != 0 && has_all(memory_.memoryTypes[i].propertyFlags, wanted)) return i;
  return fail(StatusCode::kUnavailable, "[vulkan] {} has no memory of kind {}", info_.name, to_string(heap));
}

bool Device::needs_staging() const {
  const auto type = memory_type(~0u, Heap::kDeviceLocal);
  return !type || !has_all(memory_.memoryTypes[*type].propertyFlags, flags_of(Heap::kHostVisible).must);
}

Result<Buffer> Device::allocate(std::uint64_t bytes, Heap heap) {
  if (bytes > info_.max_allocation_bytes)
    return fail(StatusCode::kUnavailable, "[vulkan] {} bytes at once, {} allows {}", bytes, info_.name,
                info_.max_allocation_bytes);
  Held held;
  held.buffer.bytes = bytes;
  VkBufferCreateInfo wanted{};
  wanted.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  wanted.size = bytes;
  wanted.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                 VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  ZRT_CHECK_OK(check(api_->CreateBuffer(device_, &wanted, nullptr, &held.buffer.handle), "a buffer"));
  held_.push_back(held);  // from here on the destructor frees it
  Held& kept = held_.back();
  VkMemoryRequirements needs;
  api_->GetBufferMemoryRequirements(device_, kept.buffer.handle, &needs);
  ZRT_TRY(const auto type, memory_type(needs.memoryTypeBits, heap));
  VkMemoryAllocateFlagsInfo flags{};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.pNext = &flags;
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = type;
  if (const auto result = api_->AllocateMemory(device_, &allocation, nullptr, &kept.memory); result != VK_SUCCESS)
    return fail(StatusCode::kExhausted, "[vulkan] {} gives no {} bytes beside the {} that are held: {}", info_.name,
                needs.size, allocated_bytes_, to_string(result));
  ZRT_CHECK_OK(check(api_->BindBufferMemory(device_, kept.buffer.handle, kept.memory, 0), "memory of a buffer"));
  if (has_all(memory_.memoryTypes[type].propertyFlags, flags_of(Heap::kHostVisible).must)) {
    void* host = nullptr;
    ZRT_CHECK_OK(check(api_->MapMemory(device_, kept.memory, 0, VK_WHOLE_SIZE, 0, &host), "a mapping"));
    kept.buffer.host = static_cast<std::byte*>(host);
  }
  VkBufferDeviceAddressInfo address{};
  address.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  address.buffer = kept.buffer.handle;
  kept.buffer.address = api_->GetBufferDeviceAddress(device_, &address);
  allocated_bytes_ += bytes;
  return kept.buffer;
}

Status Device::write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (to.host != nullptr) {
    std::memcpy(to.host + offset, bytes.data(), bytes.size());
    return {};
  }
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), staging_.bytes));
    std::memcpy(staging_.host, part.data(), part.size());
    ZRT_CHECK_OK(copy(std::vector<Copy>{{staging_.handle, to.handle, {0, offset, part.size()}}}));
    offset += part.size();
    bytes = bytes.subspan(part.size());
  }
  return {};
}

Status Device::read(const Buffer& from, std::uint64_t offset, std::span<std::byte> bytes) {
  if (from.host != nullptr) {
    std::memcpy(bytes.data(), from.host + offset, bytes.size());
    return {};
  }
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min<std::uint64_t>(bytes.size(), staging_.bytes));
    ZRT_CHECK_OK(copy(std::vector<Copy>{{from.handle, staging_.handle, {offset, 0, part.size()}}}));
    std::memcpy(part.data(), staging_.host, part.size());
    offset += part.size();
    bytes = bytes.subspan(part.size());
  }
  return {};
}

Status Device::copy(std::span<const Copy> copies) {
  ZRT_TRY(VkCommandBuffer commands, record([&](Recorder& recorder) {
            for (const Copy& copy : copies) recorder.copy(copy.from, copy.to, copy.part);
          }));
  const Status status = run({&commands, 1});
  free(commands);
  return status;
}

Result<VkCommandBuffer> Device::record(const std::function<void(Recorder&)>& write_commands) {
  VkCommandBufferAllocateInfo wanted{};
  wanted.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  wanted.commandPool = pool_;
  wanted.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  wanted.commandBufferCount = 1;
  VkCommandBuffer commands = nullptr;
  ZRT_CHECK_OK(check(api_->AllocateCommandBuffers(device_, &wanted, &commands), "a command buffer"));
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  ZRT_CHECK_OK(check(api_->BeginCommandBuffer(commands, &begin), "recording commands"));
  Recorder::full_barrier(*api_, commands);
  Recorder recorder(*api_, commands, layout_, faults_, stopwatch_ ? &*stopwatch_ : nullptr);
  write_commands(recorder);
  recorder.finish();
  ZRT_CHECK_OK(check(api_->EndCommandBuffer(commands), "recording commands"));
  return commands;
}

Status Device::submit(std::span<const VkCommandBuffer> commands) {
  std::vector<VkCommandBufferSubmitInfo> infos(commands.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    infos[i].sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO;
    infos[i].commandBuffer = commands[i];
  }
  if (stopwatch_) stopwatch_->reset(*api_, device_);
  ++n_submitted_;
  VkSemaphoreSubmitInfo signal{};
  signal.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO;
  signal.semaphore = timeline_;
  signal.value = n_submitted_;
  signal.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
  VkSubmitInfo2 submission{};
  submission.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2;
  submission.commandBufferInfoCount = static_cast<std::uint32_t>(infos.size());
  submission.pCommandBufferInfos = infos.data();
  submission.signalSemaphoreInfoCount = 1;
  submission.pSignalSemaphoreInfos = &signal;
  return check(api_->QueueSubmit2(queue_, 1, &submission, nullptr), "a submission");
}

Status Device::wait() {
  VkSemaphoreWaitInfo until{};
  until.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  until.semaphoreCount = 1;
  until.pSemaphores = &timeline_;
  until.pValues = &n_submitted_;
  ZRT_CHECK_OK(check(api_->WaitSemaphores(device_, &until, UINT64_MAX), "waiting for a submission"));
  if (stopwatch_) stopwatch_->collect(*api_, device_);
  return {};
}

Status Device::run(std::span<const VkCommandBuffer> commands) {
  ZRT_CHECK_OK(submit(commands));
  return wait();
}

}  // namespace zinc_rt::vulkan
