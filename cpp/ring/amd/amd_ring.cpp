#include "ring/amd/amd_ring.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/options.h"

namespace zinc_rt::ring {
namespace {

constexpr std::uint64_t kArgumentsAlign = 256;
constexpr std::uint64_t kLeastStepBytes = 64 << 10;
// Of the device's memory, for what is not planned as memory of the device: code, the queue's own, steps' arguments, small
// objects that the host sees.
constexpr std::uint64_t kReserveBytes = 96 << 20;

}  // namespace

Result<std::unique_ptr<Ring>> AmdRing::make(ProvenDevice proven, std::span<const CodeImage> images) {
  auto ring = std::unique_ptr<AmdRing>(new AmdRing(std::move(proven)));
  for (Step& step : ring->steps_) {
    ZRT_CHECK_OK(ring->reserve(step.packets, kLeastStepBytes, AmdDevice::Place::kHost));
    ZRT_CHECK_OK(ring->reserve(step.arguments, kLeastStepBytes, AmdDevice::Place::kDevice));
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

// All images for the device, one after another.
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
  ZRT_TRY(code_, device_.alloc(all.size(), AmdDevice::Place::kDevice));
  std::ranges::copy(all, code_.host);
  for (auto& [at, kernel] : found) {
    const std::string name = kernel.name;
    functions_[name] = {std::move(kernel), code_.va + at};
  }
  return {};
}

Result<Kernel> AmdRing::load_kernel(std::span<const std::byte> zrt) {
  ZRT_TRY(auto kernel, read_amd_kernel(zrt, device_.target()));
  const auto code = functions_.find(kernel.function);
  if (code == functions_.end()) return fail(StatusCode::kNotFound, "[amd] no image has the kernel {}", kernel.function);
  kernels_.push_back({std::move(kernel), &code->second});
  return Kernel{static_cast<std::uint32_t>(kernels_.size())};
}

Result<std::optional<DeviceMemory>> AmdRing::device_memory() const {
  ZRT_TRY(auto memory, device_.memory());
  memory.free = memory.free > kReserveBytes ? memory.free - kReserveBytes : 0;
  return memory;
}

Status AmdRing::write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> data) {
  const Binding binding{to.id, offset, data.size()};
  if (to.id == 0 || !memory_.holds(binding)) return memory_.refuse(binding);
  std::ranges::copy(data, memory_.host(binding));
  return {};
}

Result<std::span<const std::byte>> AmdRing::read(const Buffer& from, std::uint64_t offset, std::uint64_t bytes) {
  const Binding binding{from.id, offset, bytes};
  if (from.id == 0 || !memory_.holds(binding)) return memory_.refuse(binding);
  // The window is slow to read: each byte once.
  read_back_.resize(bytes);
  std::memcpy(read_back_.data(), memory_.host(binding), bytes);
  return std::span<const std::byte>(read_back_);
}

Status AmdRing::upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix) {
  const std::uint64_t bytes = row_bytes(matrix.dtype, matrix.k) * matrix.rows;
  if (matrix.data.size() != bytes)
    return fail(StatusCode::kInvalidArgument, "[amd] a matrix of {} bytes, {} given", bytes, matrix.data.size());
  return write(to, offset, matrix.data);
}

Status AmdRing::fits(const Submission& submission) const {
  ZRT_CHECK_OK(check_ranges(submission));
  const auto& batch = *submission.batch;
  for (std::uint32_t i = 0; i < submission.count; ++i) {
    const Packet& packet = batch.packets[submission.first + i];
    const std::size_t at = packet.kernel.id - 1;
    ZRT_CHECK_OK(check_kernel("amd", packet, at < kernels_.size() ? &kernels_[at].kernel : nullptr, kernels_.size()));
    for (const Binding& binding : std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings))
      if (!memory_.holds(binding)) return memory_.refuse(binding);
  }
  return {};
}

std::uint64_t AmdRing::scratch_of(const Packet& packet, StepDims dims) const {
  const AmdKernel& kernel = kernels_[packet.kernel.id - 1].kernel;
  return kernel.op->scratch_bytes != nullptr ? kernel.op->scratch_bytes(kernel.symbols, packet.grid[0].count(dims)) : 0;
}

std::uint64_t AmdRing::scratch_bytes(const PacketBatch& batch, StepDims most) const {
  std::uint64_t bytes = 0;
  for (const Packet& packet : batch.packets) bytes = std::max(bytes, scratch_of(packet, most));
  return bytes;
}

Status AmdRing::use_scratch(const Buffer& buffer) {
  const Binding binding{buffer.id, 0, buffer.bytes};
  if (buffer.id == 0 || !memory_.holds(binding)) return memory_.refuse(binding);
  scratch_va_ = memory_.address(binding);
  scratch_bytes_ = buffer.bytes;
  return {};
}

Status AmdRing::reserve(AmdDevice::Memory& memory, std::uint64_t bytes, AmdDevice::Place place) {
  if (bytes <= memory.bytes) return {};
  if (memory.host != nullptr) device_.free(memory);
  memory = {};
  std::uint64_t rounded = kLeastStepBytes;
  while (rounded < bytes) rounded *= 2;
  ZRT_TRY(memory, device_.alloc(rounded, place));
  return {};
}

Status AmdRing::reserve_scratch(const Submission& submission) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < submission.count; ++i)
    bytes = std::max(bytes, scratch_of(submission.batch->packets[submission.first + i], submission.dims));
  if (bytes <= scratch_bytes_) return {};
  ZRT_CHECK_OK(queue_.wait(first_value_ + submissions_));
  if (own_scratch_.host != nullptr) device_.free(own_scratch_);
  own_scratch_ = {};
  ZRT_TRY(own_scratch_, device_.alloc(bytes, AmdDevice::Place::kDevice));
  scratch_va_ = own_scratch_.va;
  scratch_bytes_ = own_scratch_.bytes;
  return {};
}

rdna::OpArgs AmdRing::arguments_of(const PacketBatch& batch, const Packet& packet, StepDims dims) const {
  const AmdKernel& kernel = kernels_[packet.kernel.id - 1].kernel;
  rdna::OpArgs args{};
  for (std::uint32_t b = 0; b < packet.n_bindings; ++b)
    args.buffers[b] = memory_.address(batch.bindings[packet.first_binding + b]);
  std::ranges::copy(kernel.symbols, args.symbols);
  std::memcpy(args.push, batch.push.data() + packet.first_push, packet.push_bytes);
  args.scratch = scratch_va_;
  args.n_tokens = dims.n_tokens;
  args.n_outputs = dims.n_outputs;
  return args;
}

// The first barrier waits for the step before, and lets the device see what the host has written since.
Status AmdRing::write_packets(const Submission& submission, Step& step) {
  const auto& batch = *submission.batch;
  ZRT_CHECK_OK(reserve(step.arguments, std::uint64_t{submission.count} * kArgumentsAlign, AmdDevice::Place::kDevice));
  barriers_ = barriers(batch);
  builder_.clear();
  builder_.flush_host_writes(device_.host_writes());
  builder_.barrier(pm4::kAfterTheHost);
  bool is_scratch_used = false;
  for (std::uint32_t i = 0; i < submission.count; ++i) {
    const Packet& packet = batch.packets[submission.first + i];
    const LoadedKernel& loaded = kernels_[packet.kernel.id - 1];
    const bool wants_scratch = loaded.kernel.op->scratch_bytes != nullptr;
    if (i > 0 && (barriers_[submission.first + i] || (wants_scratch && is_scratch_used))) {
      builder_.barrier();
      is_scratch_used = false;
    }
    is_scratch_used |= wants_scratch;
    const std::uint32_t groups[3] = {packet.grid[0].count(submission.dims), packet.grid[1].count(submission.dims),
                                     packet.grid[2].count(submission.dims)};
    ++dispatches_;
    if (std::ranges::find(groups, 0u) != std::end(groups)) continue;
    const auto args = arguments_of(batch, packet, submission.dims);
    std::memcpy(step.arguments.host + i * kArgumentsAlign, &args, sizeof(args));
    builder_.dispatch(loaded.code->kernel, loaded.code->image, step.arguments.va + i * kArgumentsAlign,
                      loaded.kernel.op->threads, groups);
  }
  body_end_ = builder_.dwords().size();
  queue_.finish(builder_, first_value_ + submissions_ + 1);
  const auto dwords = std::as_bytes(builder_.dwords());
  ZRT_CHECK_OK(reserve(step.packets, dwords.size(), AmdDevice::Place::kHost));
  std::memcpy(step.packets.host, dwords.data(), dwords.size());
  return {};
}

std::vector<LoggedRegion> AmdRing::logged_regions() const {
  std::vector<LoggedRegion> regions;
  const auto add = [&](std::string name, const AmdDevice::Memory& memory, AmdDevice::Place place) {
    if (memory.host != nullptr) regions.push_back({memory.va, {memory.host, memory.bytes}, place, std::move(name)});
  };
  memory_.for_each([&](std::size_t id, const AmdDevice::Memory& memory, AmdDevice::Place place) {
    add(fmt::format("buffer object {}", id), memory, place);
  });
  add("code", code_, AmdDevice::Place::kDevice);
  add("scratch", own_scratch_, AmdDevice::Place::kDevice);
  for (const Step& step : steps_) add("arguments", step.arguments, AmdDevice::Place::kDevice);
  return regions;
}

// With a log each submission is waited for: what memory holds after it is a part of the log.
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
  ZRT_CHECK_OK(fits(submission));
  Step& step = steps_[submissions_ % std::size(steps_)];
  ZRT_CHECK_OK(queue_.wait(first_value_ + step.submission));
  ZRT_CHECK_OK(reserve_scratch(submission));
  const std::uint64_t before = dispatches_;
  auto status = write_packets(submission, step);
  if (status) status = run(step, first_value_ + submissions_ + 1);
  if (!status) {
    dispatches_ = before;
    return std::unexpected(status.error());
  }
  step.submission = ++submissions_;
  return Fence{submissions_};
}

Status AmdRing::wait(Fence fence) {
  if (fence.value > submissions_)
    return fail(StatusCode::kInvalidArgument, "[amd] fence {} was never given out, {} were", fence.value, submissions_);
  return queue_.wait(fence.value == 0 ? 0 : first_value_ + fence.value);
}

RingStats AmdRing::stats() const {
  return {memory_.allocated_bytes(), 0, submissions_, dispatches_};
}

}  // namespace zinc_rt::ring
