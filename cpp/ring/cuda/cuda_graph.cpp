// From a part of a batch to a CUDA graph: its packets become launches, captured one after another with programmatic
// edges, between the kernels that begin and end a step.
#include <algorithm>

#include "base/error.h"
#include "ring/cuda/cuda_ring.h"

namespace zinc_rt::ring {
namespace {

// Operands of host memory up to this size are copied to the device when a step begins; larger ones (histories, biases)
// are read where they lie, by the few steps that want them.
constexpr std::uint64_t kCopiedBytes = 16u << 10;

std::uint32_t symbol_of(const GridExtent& extent) {
  switch (extent.extent.kind) {
    case ir::Dim::Kind::kTokens: return cuda::kSymbolicTokens;
    case ir::Dim::Kind::kOutputs: return cuda::kSymbolicOutputs;
    case ir::Dim::Kind::kConst: return extent.extent.n;
  }
  return 1;
}

bool same(const Binding& a, const Binding& b) {
  return a.bo == b.bo && a.offset == b.offset && a.bytes == b.bytes;
}

}  // namespace

// A packet, its addresses not yet.
OpCall CudaRing::call_of(const PacketBatch& batch, const Packet& packet, StepDims bucket) const {
  const LoadedKernel& kernel = kernels_[packet.kernel.id - 1];
  OpCall call{kernel.op->op, {}, symbol_of(packet.grid[0]), kernel.symbols, {}, bucket};
  const auto push = std::span(batch.push).subspan(packet.first_push, packet.push_bytes);
  call.push.assign(push.begin(), push.end());
  // Of a bucket of one token kernels need not ask how many there are.
  if (bucket.n_tokens == 1) {
    if (call.rows_symbol == cuda::kSymbolicTokens) call.rows_symbol = 1;
    std::ranges::replace(call.symbols, cuda::kSymbolicTokens, 1u);
  }
  return call;
}

// The addresses of a packet. What it reads of host memory, and no packet of the submission writes, it reads from a
// copy, but for weights: they are read where they lie.
Result<OpCall> CudaRing::bound_call(const Submission& submission, const Packet& packet, StepDims bucket,
                                    cuda::StepBeginArgs& begin, std::vector<Binding>& shadowed) {
  const auto& batch = *submission.batch;
  const LoadedKernel& kernel = kernels_[packet.kernel.id - 1];
  const CudaOp& op = *kernel.op;
  const auto bindings = std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings);
  OpCall call = call_of(batch, packet, bucket);
  int n_places = 0;
  const auto is_written = [&](const Binding& binding) {
    for (std::uint32_t i = 0; i < submission.count; ++i) {
      const Packet& other = batch.packets[submission.first + i];
      if (other.kind != PacketKind::kDispatch) continue;
      const std::size_t n_inputs = ir::rule(kernels_[other.kernel.id - 1].op->op).inputs.size();
      for (std::size_t b = n_inputs; b < other.n_bindings; ++b)
        if (batch.bindings[other.first_binding + b].bo == binding.bo) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const Binding& binding = bindings[i];
    std::byte* address = memory_.address(binding);
    const bool is_table = static_cast<int>(i) == op.pages.page_table;
    if (binding.bo != 0 && memory_.is_host(binding.bo) && !memory_.has_weights(binding.bo) &&
        (is_table || binding.bytes <= kCopiedBytes) && !is_written(binding)) {
      const bool is_known = std::ranges::any_of(shadowed, [&](const Binding& other) { return same(binding, other); });
      const bool has_room = is_table ? begin.n_pages < cuda::kMaxPageJobs : begin.n_copies < cuda::kMaxCopyJobs;
      if (is_known || has_room) {
        ZRT_TRY(std::byte * copy, memory_.shadow(binding));
        if (!is_known && is_table) {
          const auto operand = [&](int at) -> const Binding& { return bindings[static_cast<std::size_t>(at)]; };
          const auto at = [&](int i) { return reinterpret_cast<const std::int32_t*>(memory_.address(operand(i))); };
          const std::uint64_t room =
              std::min(operand(op.pages.pos).bytes, operand(op.pages.slot).bytes) / sizeof(std::int32_t);
          begin.pages[begin.n_pages++] = {at(op.pages.page_table),
                                          at(op.pages.pos),
                                          at(op.pages.slot),
                                          reinterpret_cast<std::int32_t*>(copy),
                                          kernel.symbols[static_cast<std::size_t>(op.pages.width_symbol)],
                                          static_cast<std::uint32_t>(std::min<std::uint64_t>(bucket.n_tokens, room))};
        } else if (!is_known) {
          begin.copies[begin.n_copies++] = {reinterpret_cast<const std::uint32_t*>(address),
                                            reinterpret_cast<std::uint32_t*>(copy),
                                            static_cast<std::uint32_t>((binding.bytes + 3) / 4)};
        }
        if (!is_known) shadowed.push_back(binding);
        address = copy;
        const int operand = static_cast<int>(i);
        if (operand == op.pages.page_table || operand == op.pages.pos || operand == op.pages.slot) ++n_places;
      }
    }
    call.buffers.push_back(address);
  }
  call.has_places = n_places == 3;
  return call;
}

Status CudaRing::plan(const Submission& submission, StepDims bucket, std::vector<Launch>& launches) {
  auto* n_steps = reinterpret_cast<std::uint32_t*>(words_ + 256);
  auto* header = reinterpret_cast<cuda::StepHeader*>(words_);
  cuda::StepBeginArgs begin{};
  begin.headers = headers_;
  begin.header = header;
  begin.n_steps = n_steps;
  std::vector<Binding> shadowed;
  std::vector<OpCall> calls;
  for (std::uint32_t i = 0; i < submission.count; ++i) {
    const Packet& packet = submission.batch->packets[submission.first + i];
    if (packet.kind != PacketKind::kDispatch) continue;
    ZRT_TRY(auto call, bound_call(submission, packet, bucket, begin, shadowed));
    calls.push_back(std::move(call));
  }
  for (;;) {
    launches.clear();
    Planner planner(header, scratch_, traits_, launches);
    planner.launch("step", "step_begin", begin.n_copies + std::max(1u, begin.n_pages), 1, 1, cuda::kBeginThreads, 0,
                   begin);
    for (std::size_t i = 0; i < calls.size();) {
      const std::size_t n = plan_packets(planner, std::span(calls).subspan(i));
      planner.end_packets(std::span(calls).subspan(i, n));
      i += n;
    }
    planner.launch("step", "step_end", 1, 1, 1, 1, 0, cuda::StepEndArgs{n_steps, const_cast<std::uint32_t*>(done_)});
    if (planner.scratch_bytes() <= scratch_bytes_) return {};
    ZRT_CHECK_OK(drop_scratch());
    ZRT_TRY(own_scratch_, alloc_device(driver_, planner.scratch_bytes()));
    scratch_ = own_scratch_;
    scratch_bytes_ = planner.scratch_bytes();
  }
}

// Each packet by itself, which takes no less than with one that continues it, but for those whose scratch memory that
// one still reads; in every bucket: those of fewer rows may take more.
std::uint64_t CudaRing::scratch_bytes(const PacketBatch& batch, StepDims most) const {
  std::uint64_t bytes = 0;
  auto* const nowhere = reinterpret_cast<std::byte*>(&bytes);  // an address that nothing follows
  StepDims bucket{1, 1};
  for (bool is_last = false; !is_last;) {
    is_last = bucket.n_tokens >= most.n_tokens && bucket.n_outputs >= most.n_outputs;
    std::vector<Launch> launches;
    Planner planner(nullptr, nowhere, traits_, launches);
    for (const Packet& packet : batch.packets) {
      if (packet.kind != PacketKind::kDispatch) continue;
      OpCall call = call_of(batch, packet, bucket);
      // Whether an operand is absent decides what is planned.
      for (const Binding& binding : std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings))
        call.buffers.push_back(binding.bo == 0 ? nullptr : nowhere);
      find_cuda_op(call.op)->plan(planner, call);
      if (!is_scratch_read_later(call.op)) planner.end_packets({&call, 1});
    }
    bytes = std::max(bytes, planner.scratch_bytes() + planner.most_kept_bytes());
    if (bucket.n_tokens < most.n_tokens) bucket.n_tokens *= 2;
    if (bucket.n_outputs < most.n_outputs) bucket.n_outputs *= 2;
  }
  return bytes;
}

Status CudaRing::use_scratch(const Buffer& buffer) {
  const Binding binding{buffer.id, 0, buffer.bytes};
  if (buffer.id == 0 || !memory_.holds(binding)) return memory_.refuse(binding);
  ZRT_CHECK_OK(use_device());
  ZRT_CHECK_OK(drop_scratch());
  scratch_ = memory_.address(binding);
  scratch_bytes_ = buffer.bytes;
  return {};
}

Status CudaRing::drop_scratch() {
  ZRT_CHECK_OK(drop_graphs());  // they hold addresses in it
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

Status CudaRing::encode_tensors(Launch& launch) const {
  for (const Launch::Tensor& tensor : launch.tensors) {
    CUtensorMap map;
    const cuuint64_t dims[] = {tensor.k, tensor.rows, tensor.n_experts},
                     strides[] = {std::uint64_t{tensor.k} * 2, tensor.expert_bytes};
    const cuuint32_t box[] = {cuda::kWgmmaValues, tensor.box_rows, 1}, steps[] = {1, 1, 1};
    ZRT_CHECK_OK(driver_.check(
        driver_.cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, const_cast<void*>(tensor.w), dims,
                                       strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        fmt::format("the map of a matrix of {} x {} for {}", tensor.rows, tensor.k, launch.function)));
    static_assert(sizeof(map) == sizeof(cuda::TensorMap));
    std::memcpy(launch.args.data() + tensor.at, &map, sizeof(map));
  }
  return {};
}

Result<CudaRing::Graph> CudaRing::build(const Submission& submission, StepDims bucket) {
  std::vector<Launch> launches;
  ZRT_CHECK_OK(plan(submission, bucket, launches));
  for (Launch& launch : launches) ZRT_CHECK_OK(encode_tensors(launch));
  // Modules are loaded and limits raised before the capture, in which neither may happen.
  for (const Launch& launch : launches) {
    ZRT_TRY(const CUfunction code, function(launch.image, launch.function));
    // A kernel may be launched with more here and with less there: its limit is never lowered.
    if (std::uint32_t& limit = shared_limits_[code]; launch.shared > std::max(limit, 32u << 10)) {
      ZRT_CHECK_OK(driver_.check(driver_.cuFuncSetAttribute(code, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                            static_cast<int>(launch.shared)),
                                 fmt::format("{} bytes of shared memory for {}", launch.shared, launch.function)));
      limit = launch.shared;
    }
  }
  ZRT_CHECK_OK(driver_.check(driver_.cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                             "cuStreamBeginCapture"));
  Status status;
  // The first is step_begin, for whose end the second waits before it begins: so all of them may read the step's
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
  graph.n_dispatches = static_cast<std::uint32_t>(
      std::ranges::count(std::span(submission.batch->packets).subspan(submission.first, submission.count),
                         PacketKind::kDispatch, &Packet::kind));
  return graph;
}

}  // namespace zinc_rt::ring
