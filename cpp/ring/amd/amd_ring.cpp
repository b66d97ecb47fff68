#include "ring/amd/amd_ring.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/options.h"
#include "ring/gpu/fit.h"

namespace zinc_rt::ring {
namespace {

constexpr std::uint64_t kArgumentsAlign = 256;
constexpr std::uint64_t kLeastStepBytes = 64 << 10;
// Device memory that is kept back for what the memory plan does not list: code, the queue, the arguments of steps, and
// small objects that the host writes.
constexpr std::uint64_t kReserveBytes = 96 << 20;

}  // namespace

Result<std::unique_ptr<Ring>> AmdRing::make(ProvenDevice proven, std::span<const CodeImage> images) {
  auto ring = std::unique_ptr<AmdRing>(new AmdRing(std::move(proven)));
  for (Step& step : ring->steps_) {
    ZRT_CHECK_OK(ring->reserve(step.packets, kLeastStepBytes, AmdDevice::Domain::kHost));
    ZRT_CHECK_OK(ring->reserve(step.arguments, kLeastStepBytes, AmdDevice::Domain::kDevice));
  }
  ZRT_CHECK_OK(ring->load_images(images));
  if (const std::string path = options::get("ZINC_RT_PACKET_LOG"); !path.empty()) {
    const AmdDevice& device = ring->device_;
    ZRT_TRY(ring->recorder_, PacketRecorder::create(path, device.target(), device.describe()));
    for (const auto& [name, code] : ring->functions_)
      ZRT_CHECK_OK(ring->recorder_->name_kernel(code.image + code.kernel.entry, name));
  }
  return std::unique_ptr<Ring>(std::move(ring));
}

AmdRing::~AmdRing() {
  if (queue_.broken()) static_cast<void>(queue_.wait(first_value_ + submissions_));
  memory_.clear();
  for (const Step& step : steps_)
    for (const auto* memory : {&step.packets, &step.arguments})
      if (memory->host != nullptr) device_.free(*memory);
  for (const auto* memory : {&own_scratch_, &code_})
    if (memory->host != nullptr) device_.free(*memory);
}

// Copies the code of all images to the device, one image after another.
Status AmdRing::load_images(std::span<const CodeImage> images) {
  std::vector<std::byte> all;
  std::vector<std::pair<std::uint64_t, KernelCode>> found;
  for (const CodeImage& image : images) {
    if (image.target != device_.target()) continue;
    ZRT_TRY(auto object, read_code_object(image.code, image.name));
    const std::uint64_t at = all.size();
    for (auto& kernel : object.kernels) {
      if (kernel.argument_bytes != sizeof(rdna::OpArgs))
        return fail(StatusCode::kCorrupt, "[amd] kernel {} takes {} bytes of arguments, {} are given", kernel.name,
                    kernel.argument_bytes, sizeof(rdna::OpArgs));
      found.emplace_back(at, std::move(kernel));
    }
    all.insert(all.end(), object.image.begin(), object.image.end());
    all.resize((all.size() + kCodeAlign - 1) / kCodeAlign * kCodeAlign);
  }
  if (all.empty())
    return fail(StatusCode::kUnavailable, "[amd] this build has no kernels for {}", to_string(device_.target()));
  ZRT_TRY(code_, device_.alloc(all.size(), AmdDevice::Domain::kDevice));
  std::ranges::copy(all, code_.host);
  for (auto& [at, kernel] : found) {
    const std::string name = kernel.name;
    functions_[name] = {std::move(kernel), code_.va + at};
  }
  return {};
}

Result<Kernel> AmdRing::load_kernel(std::span<const std::byte> zrt) {
  ZRT_TRY(auto kernel, read_amd_kernel(zrt, device_.target()));
  if (kernel.op->threads != 0 && !functions_.contains(kernel.name))
    return fail(StatusCode::kNotFound, "[amd] no image has the kernel {}", kernel.name);
  kernels_.push_back(std::move(kernel));
  return Kernel{static_cast<std::uint32_t>(kernels_.size())};
}

Result<std::optional<DeviceMemory>> AmdRing::device_memory() const {
  ZRT_TRY(auto memory, device_.memory());
  memory.free = memory.free > kReserveBytes ? memory.free - kReserveBytes : 0;
  return memory;
}

Status AmdRing::write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> data) {
  ZRT_TRY(const Binding part, gpu::part_of(memory_, to, offset, data.size()));
  std::ranges::copy(data, memory_.host(part));
  return {};
}

Result<std::span<const std::byte>> AmdRing::read(const Buffer& from, std::uint64_t offset, std::uint64_t bytes) {
  ZRT_TRY(const Binding part, gpu::part_of(memory_, from, offset, bytes));
  // Reading through the window is slow, so each byte is read once and the caller gets a copy.
  read_back_.resize(bytes);
  std::memcpy(read_back_.data(), memory_.host(part), bytes);
  return std::span<const std::byte>(read_back_);
}

Status AmdRing::upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix) {
  ZRT_TRY(const Binding part, gpu::part_of("amd", memory_, to, offset, matrix));
  std::ranges::copy(matrix.data, memory_.host(part));
  return {};
}

std::uint64_t AmdRing::plan(const Submission& submission, std::uint64_t scratch, bool has_memory,
                            std::vector<AmdLaunch>& launches) const {
  const auto address = [&](const Binding& binding) -> std::uint64_t {
    return has_memory ? memory_.address(binding) : binding.bo;
  };
  return plan_submission(submission, kernels_, address, scratch, launches);
}

// A step of fewer tokens may need more scratch memory, because its histories are split into parts. So steps of each
// power of two of tokens are planned, and the largest need is returned.
std::uint64_t AmdRing::scratch_bytes(const PacketBatch& batch, StepDims most) const {
  std::vector<AmdLaunch> launches;
  const auto bytes_of = [&](std::uint32_t n_tokens) {
    return plan({&batch, 0, static_cast<std::uint32_t>(batch.packets.size()), {n_tokens, most.n_outputs}}, 0, false,
                launches);
  };
  std::uint64_t bytes = bytes_of(most.n_tokens);
  for (std::uint32_t n = 1; n < most.n_tokens; n *= 2) bytes = std::max(bytes, bytes_of(n));
  return bytes;
}

Status AmdRing::use_scratch(const Buffer& buffer) {
  ZRT_TRY(const Binding part, gpu::part_of(memory_, buffer, 0, buffer.bytes));
  scratch_va_ = memory_.address(part);
  scratch_bytes_ = buffer.bytes;
  return {};
}

Status AmdRing::reserve(AmdDevice::Memory& memory, std::uint64_t bytes, AmdDevice::Domain domain) {
  if (bytes <= memory.bytes) return {};
  if (memory.host != nullptr) device_.free(memory);
  memory = {};
  std::uint64_t rounded = kLeastStepBytes;
  while (rounded < bytes) rounded *= 2;
  ZRT_TRY(memory, device_.alloc(rounded, domain));
  return {};
}

Status AmdRing::grow_scratch(std::uint64_t bytes) {
  ZRT_CHECK_OK(queue_.wait(first_value_ + submissions_));
  if (own_scratch_.host != nullptr) device_.free(own_scratch_);
  own_scratch_ = {};
  ZRT_TRY(own_scratch_, device_.alloc(bytes, AmdDevice::Domain::kDevice));
  scratch_va_ = own_scratch_.va;
  scratch_bytes_ = own_scratch_.bytes;
  return {};
}

// Writes the packets of a step. The first barrier waits for the previous step, and makes what the host has written
// since then visible to the device.
Status AmdRing::write_packets(Step& step) {
  ZRT_CHECK_OK(reserve(step.arguments, launches_.size() * kArgumentsAlign, AmdDevice::Domain::kDevice));
  builder_.clear();
  builder_.flush_host_writes(device_.host_writes());
  builder_.barrier(pm4::kAfterTheHost);
  std::uint64_t at = 0;
  for (const AmdLaunch& launch : launches_) {
    const auto code = functions_.find(launch.function);
    if (code == functions_.end())
      return fail(StatusCode::kNotFound, "[amd] no image has the kernel {}", launch.function);
    if (launch.waits) builder_.barrier();
    if (std::ranges::find(launch.groups, 0u) != std::end(launch.groups)) continue;
    std::memcpy(step.arguments.host + at, &launch.args, sizeof(launch.args));
    builder_.dispatch(code->second.kernel, code->second.image, step.arguments.va + at, launch.threads, launch.groups);
    at += kArgumentsAlign;
  }
  body_end_ = builder_.dwords().size();
  queue_.finish(builder_, first_value_ + submissions_ + 1);
  const auto dwords = std::as_bytes(builder_.dwords());
  ZRT_CHECK_OK(reserve(step.packets, dwords.size(), AmdDevice::Domain::kHost));
  std::memcpy(step.packets.host, dwords.data(), dwords.size());
  return {};
}

std::vector<LoggedRegion> AmdRing::logged_regions() const {
  std::vector<LoggedRegion> regions;
  const auto add = [&](std::string name, const AmdDevice::Memory& memory, AmdDevice::Domain domain) {
    if (memory.host != nullptr) regions.push_back({memory.va, {memory.host, memory.bytes}, domain, std::move(name)});
  };
  memory_.for_each([&](std::size_t id, const AmdDevice::Memory& memory, AmdDevice::Domain domain) {
    add(fmt::format("buffer object {}", id), memory, domain);
  });
  add("code", code_, AmdDevice::Domain::kDevice);
  add("scratch", own_scratch_, AmdDevice::Domain::kDevice);
  for (const Step& step : steps_) add("arguments", step.arguments, AmdDevice::Domain::kDevice);
  return regions;
}

// Submits a step. If a packet log is written, waits for each submission, because the log records the memory after it.
Status AmdRing::run(const Step& step, std::uint64_t value) {
  const auto dwords = builder_.dwords();
  const auto n_dwords = static_cast<std::uint32_t>(dwords.size());
  if (recorder_ == nullptr) return queue_.submit(step.packets.va, n_dwords, value);
  ZRT_CHECK_OK(queue_.wait(value - 1));
  const auto regions = logged_regions();
  ZRT_CHECK_OK(
      recorder_->before(regions, dwords.subspan(PacketBuilder::kFlushDwords, body_end_ - PacketBuilder::kFlushDwords)));
  ZRT_CHECK_OK(queue_.submit(step.packets.va, n_dwords, value));
  ZRT_CHECK_OK(queue_.wait(value));
  return recorder_->after(regions);
}

Result<Fence> AmdRing::submit(const Submission& submission) {
  if (!queue_.broken()) return std::unexpected(queue_.broken().error());
  ZRT_CHECK_OK(gpu::fits("amd", submission, std::span<const AmdKernel>(kernels_), memory_, amd_joins().size()));
  Step& step = steps_[submissions_ % std::size(steps_)];
  ZRT_CHECK_OK(queue_.wait(first_value_ + step.submission));
  if (const std::uint64_t bytes = plan(submission, scratch_va_, true, launches_); bytes > scratch_bytes_) {
    ZRT_CHECK_OK(grow_scratch(bytes));
    plan(submission, scratch_va_, true, launches_);
  }
  ZRT_CHECK_OK(write_packets(step));
  ZRT_CHECK_OK(run(step, first_value_ + submissions_ + 1));
  dispatches_ += submission.count;
  step.submission = ++submissions_;
  return Fence{submissions_};
}

Status AmdRing::wait(Fence fence) {
  ZRT_CHECK_OK(check_fence("amd", fence, submissions_));
  return queue_.wait(fence.value == 0 ? 0 : first_value_ + fence.value);
}

RingStats AmdRing::stats() const {
  return {memory_.allocated_bytes(), 0, submissions_, dispatches_};
}

}  // namespace zinc_rt::ring
