// Turns a part of a batch into a CUDA graph: its packets become launches, captured one after another with programmatic
// edges, between the kernels that begin and end a step.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <set>

#include "base/error.h"
#include "ring/cuda/cuda_ring.h"
#include "ring/gpu/fit.h"

namespace zinc_rt::ring {
namespace {

// Operands in host memory up to this size are copied to the device when a step begins. Larger ones (histories, biases)
// are read in place by the few steps that need them.
constexpr std::uint64_t kCopiedBytes = 16u << 10;
// Bytes of shared memory that a launch may ask for on every GPU without raising the kernel's limit (cuFuncSetAttribute):
// 48 KiB, less what a kernel declares itself, which is 32 KiB at most.
constexpr std::uint32_t kUnaskedShared = 16u << 10;

}  // namespace

// A submission reads host memory from a copy that step_begin makes, unless one of its packets writes that memory.
// Weights in host memory are read in place.
Result<CudaRing::Copies> CudaRing::copies_of(const Submission& submission, StepDims bucket) {
  const auto& batch = *submission.batch;
  const auto packets = std::span(batch.packets).subspan(submission.first, submission.count);
  std::set<std::uint32_t> written;  // ids of the buffer objects that packets of this submission write
  for (const Packet& packet : packets)
    for (const Binding& binding : std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings))
      if (&binding - &batch.bindings[packet.first_binding] >= packet.n_inputs) written.insert(binding.bo);
  Copies copies;
  cuda::StepBeginArgs& begin = copies.begin;
  for (const Packet& packet : packets) {
    const LoadedKernel& kernel = kernels_[packet.kernel.id - 1];
    const Pages pages = pages_of(kernel.op->op);
    const auto operand = [&](int i) -> const Binding& {
      return batch.bindings[packet.first_binding + static_cast<std::uint32_t>(i)];
    };
    for (int i = 0; i < static_cast<int>(packet.n_inputs); ++i) {
      const Binding& binding = operand(i);
      const bool is_table = i == pages.page_table;
      if (binding.bo == 0 || !memory_.is_host(binding.bo) || memory_.has_weights(binding.bo) ||
          (!is_table && binding.bytes > kCopiedBytes) || written.contains(binding.bo) ||
          copies.at.contains(binding.value) ||
          (is_table ? begin.n_pages == cuda::kMaxPageJobs : begin.n_copies == cuda::kMaxCopyJobs))
        continue;
      ZRT_TRY(std::byte * copy, memory_.shadow(binding));
      copies.at[binding.value] = copy;
      if (is_table) {
        const auto ints = [&](int at) {
          return reinterpret_cast<const std::int32_t*>(this->address(operand(at), submission));
        };
        const std::uint64_t room = std::min(operand(pages.pos).bytes, operand(pages.slot).bytes) / sizeof(std::int32_t);
        begin.pages[begin.n_pages++] = {ints(pages.page_table),
                                        ints(pages.pos),
                                        ints(pages.slot),
                                        reinterpret_cast<std::int32_t*>(copy),
                                        kernel.symbols[static_cast<std::size_t>(pages.width_symbol)],
                                        static_cast<std::uint32_t>(std::min<std::uint64_t>(bucket.n_tokens, room))};
      } else {
        begin.copies[begin.n_copies++] = {reinterpret_cast<const std::uint32_t*>(address(binding, submission)),
                                          reinterpret_cast<std::uint32_t*>(copy),
                                          static_cast<std::uint32_t>((binding.bytes + 3) / 4)};
      }
    }
  }
  return copies;
}

// Plans the launches of a submission, between step_begin and step_end, and replaces each Place in their arguments by an
// address.
Result<std::vector<Launch>> CudaRing::plan(const Submission& submission, StepDims bucket) {
  const auto& batch = *submission.batch;
  ZRT_TRY(auto copies, copies_of(submission, bucket));
  std::vector<OpCall> calls;
  for (const Packet& packet : std::span(batch.packets).subspan(submission.first, submission.count)) {
    calls.push_back(call_of(batch, packet, kernels_, bucket));
    const Pages pages = pages_of(packet.op);
    calls.back().has_places =
        pages.page_table >= 0 && std::ranges::all_of(std::array{pages.page_table, pages.pos, pages.slot}, [&](int i) {
          return copies.at.contains(batch.bindings[packet.first_binding + static_cast<std::uint32_t>(i)].value);
        });
  }
  PartPlan part = plan_part(batch, submission.first, calls, profile_);
  if (part.scratch_bytes > scratch_bytes_) {
    ZRT_CHECK_OK(drop_scratch());
    ZRT_TRY(own_scratch_, alloc_device(driver_, part.scratch_bytes));
    scratch_ = own_scratch_;
    scratch_bytes_ = part.scratch_bytes;
  }
  auto* n_steps = reinterpret_cast<std::uint32_t*>(words_ + 256);
  const auto address = [&](Place place) -> const void* {
    switch (kind_of(place)) {
      case PlaceKind::kAbsent: return nullptr;
      case PlaceKind::kHeader: return words_;
      case PlaceKind::kScratch: return scratch_ + number_of(place);
      case PlaceKind::kValue: break;
    }
    const auto value = static_cast<ValueId>(number_of(place));
    const auto copy = copies.at.find(value);
    return copy != copies.at.end() ? copy->second : this->address(batch.values[value].at, submission);
  };
  for (Launch& launch : part.launches) {
    for (const std::uint32_t at : launch.places) {
      Place place;
      std::memcpy(&place, launch.args.data() + at, sizeof(place));
      const void* const there = address(place);
      std::memcpy(launch.args.data() + at, &there, sizeof(there));
    }
    for (Launch::Tensor& tensor : launch.tensors) ZRT_CHECK_OK(encode(tensor, address(tensor.w), launch));
  }
  cuda::StepBeginArgs& begin = copies.begin;
  begin.headers = headers_;
  begin.header = reinterpret_cast<cuda::StepHeader*>(words_);
  begin.n_steps = n_steps;
  const auto step = [](const char* function, std::uint32_t workgroups, std::uint32_t threads, const auto& args) {
    const auto bytes = std::as_bytes(std::span(&args, 1));
    return Launch{"step", function, {workgroups, 1, 1}, threads, 0, {bytes.begin(), bytes.end()}, {}, {}};
  };
  std::vector<Launch> launches;
  launches.reserve(part.launches.size() + 2);
  launches.push_back(step("step_begin", begin.n_copies + std::max(1u, begin.n_pages), cuda::kBeginThreads, begin));
  std::ranges::move(part.launches, std::back_inserter(launches));
  launches.push_back(step("step_end", 1, 1, cuda::StepEndArgs{n_steps, reinterpret_cast<std::uint32_t*>(done_)}));
  return launches;
}

std::uint64_t CudaRing::scratch_bytes(const PacketBatch& batch, StepDims most) const {
  return most_scratch_bytes(batch, kernels_, most, profile_);
}

Status CudaRing::use_scratch(const Buffer& buffer) {
  ZRT_TRY(const Binding part, gpu::part_of(memory_, buffer, 0, buffer.bytes));
  ZRT_CHECK_OK(use_device());
  ZRT_CHECK_OK(drop_scratch());
  scratch_ = memory_.address(part);
  scratch_bytes_ = buffer.bytes;
  return {};
}

Status CudaRing::drop_scratch() {
  ZRT_CHECK_OK(drop_graphs());  // the graphs hold addresses in the old scratch memory
  if (own_scratch_ != nullptr) driver_.cuMemFree(reinterpret_cast<CUdeviceptr>(own_scratch_));
  scratch_ = own_scratch_ = nullptr, scratch_bytes_ = 0;
  return {};
}

Status CudaRing::drop_graphs() {
  ZRT_CHECK_OK(driver_.check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize"));
  for (auto& [key, graph] : graphs_) driver_.cuGraphExecDestroy(graph.exec);
  graphs_.clear();
  return {};
}

Status CudaRing::start(const Launch& launch, bool after_another) {
  ZRT_TRY(const CUfunction code, function(launch.image, launch.function));
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = launch.grid[0];
  config.gridDimY = launch.grid[1];
  config.gridDimZ = launch.grid[2];
  config.blockDimX = launch.block;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = launch.shared;
  config.hStream = stream_;
  config.attrs = &attribute;
  config.numAttrs = after_another && overlaps_launches_ ? 1 : 0;
  void* params[] = {const_cast<std::byte*>(launch.args.data())};
  return driver_.check(driver_.cuLaunchKernelEx(&config, code, params, nullptr),
                       fmt::format("{} with a grid of {} x {} x {}, {} threads, {} bytes", launch.function,
                                   launch.grid[0], launch.grid[1], launch.grid[2], launch.block, launch.shared));
}

Status CudaRing::encode(const Launch::Tensor& tensor, const void* w, Launch& launch) const {
  CUtensorMap map;
  const cuuint64_t dims[] = {tensor.k, tensor.rows, tensor.n_experts},
                   strides[] = {std::uint64_t{tensor.k} * 2, tensor.expert_bytes};
  const cuuint32_t box[] = {cuda::kWgmmaValues, tensor.box_rows, 1}, steps[] = {1, 1, 1};
  ZRT_CHECK_OK(driver_.check(
      driver_.cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, const_cast<void*>(w), dims, strides, box,
                                     steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      fmt::format("the map of a matrix of {} x {} for {}", tensor.rows, tensor.k, launch.function)));
  static_assert(sizeof(map) == sizeof(cuda::TensorMap));
  std::memcpy(launch.args.data() + tensor.at, &map, sizeof(map));
  return {};
}

Result<CudaRing::Graph> CudaRing::build(const Submission& submission, StepDims bucket) {
  ZRT_TRY(const auto launches, plan(submission, bucket));
  // Modules are loaded and limits raised before the capture, because a capture forbids both.
  for (const Launch& launch : launches) {
    ZRT_TRY(const CUfunction code, function(launch.image, launch.function));
    // A kernel may be launched with different amounts of shared memory, so its limit is raised to the largest and never
    // lowered.
    if (std::uint32_t& limit = shared_limits_[code]; launch.shared > std::max(limit, kUnaskedShared)) {
      ZRT_CHECK_OK(driver_.check(driver_.cuFuncSetAttribute(code, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                            static_cast<int>(launch.shared)),
                                 fmt::format("{} bytes of shared memory for {}", launch.shared, launch.function)));
      limit = launch.shared;
    }
  }
  ZRT_CHECK_OK(driver_.check(driver_.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                             "cuStreamBeginCapture"));
  Status status;
  // The first launch is step_begin. The second waits until step_begin has ended, so all launches may read the step's
  // numbers at once.
  for (std::size_t i = 0; i < launches.size() && status; ++i) status = start(launches[i], i > 1);
  CUgraph captured = nullptr;
  const auto ended = driver_.check(driver_.cuStreamEndCapture(stream_, &captured), "cuStreamEndCapture");
  Graph graph;
  if (status && ended)
    status = driver_.check(driver_.cuGraphInstantiateWithFlags(&graph.exec, captured, 0), "cuGraphInstantiate");
  if (captured != nullptr) driver_.cuGraphDestroy(captured);
  ZRT_CHECK_OK(status);
  ZRT_CHECK_OK(ended);
  graph.n_dispatches = submission.count;
  return graph;
}

}  // namespace zinc_rt::ring
