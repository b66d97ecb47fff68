// CudaRing runs a step as one launch of a CUDA graph. A graph is built when a part of a batch is first submitted with a
// given number of rows, rounded up to a power of two (the bucket), and serves all later steps of that bucket. What
// differs from step to step is in memory: the first kernel of a graph takes the step's header from a ring in host
// memory and copies the host memory that the step reads. The last kernel counts the step in a word that the host polls.
// So once graphs exist, a submission is a few writes and one driver call.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <unordered_map>

#include "ring/cuda/cuda_memory.h"
#include "ring/cuda/plan/kernels.h"
#include "ring/operand_sets.h"
#include "ring/ring.h"

namespace zinc_rt::ring {

class CudaRing final : public Ring {
 public:
  // Opens the GPU number `device`. fast: arithmetic `fast` is allowed; it is used if the GPU runs sm_90a code.
  static Result<std::unique_ptr<Ring>> make(std::uint32_t device, bool fast);
  ~CudaRing() override;

  Result<Fence> submit(const Submission& submission) override;
  Status wait(Fence fence) override;
  Result<std::span<std::byte>> map(const Buffer& buffer) override { return memory_.map(buffer); }
  Result<Buffer> alloc_bo(std::uint64_t bytes, Heap heap) override;
  Result<Buffer> import_bo(Ring& owner, const Buffer& buffer) override;
  void free_bo(const Buffer& buffer) override;
  Result<std::optional<DeviceMemory>> device_memory() const override;
  std::uint64_t scratch_bytes(const PacketBatch& batch, StepDims most) const override;
  Status use_scratch(const Buffer& buffer) override;
  bool has_operand_sets() const override { return true; }
  Status use_operand_sets(const Buffer& buffer, std::uint64_t stride) override;
  Status write(const Buffer& to, std::uint64_t offset, std::span<const std::byte> data) override;
  Result<std::span<const std::byte>> read(const Buffer& from, std::uint64_t offset, std::uint64_t bytes) override;
  // Weights have the tier's own layout (kernels/cuda/weights.cuh), which is written on the device.
  bool repacks_weights() const override { return true; }
  Status upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix) override;
  Result<Kernel> load_kernel(std::span<const std::byte> zrt) override;
  const kernel::KernelTable& kernels() const override { return table_; }
  std::span<const std::string_view> joins() const override { return cuda_join_patterns(); }
  RingStats stats() const override;
  std::string describe() const override { return description_; }
  bool is_fast() const override { return profile_.is_fast; }

 private:
  // An instantiated CUDA graph. n_dispatches: the number of packets that it runs.
  struct Graph {
    CUgraphExec exec = nullptr;
    std::uint32_t n_dispatches = 0;
  };
  // The key of a graph: a part of a batch (packets first to first + count - 1), a bucket, and the set of operands whose
  // addresses the graph holds.
  struct Key {
    std::uint64_t batch;  // BatchId
    std::uint32_t first, count;
    StepDims bucket;
    std::uint32_t operand_set;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return key.batch * 0x9E3779B97F4A7C15u ^ (std::uint64_t{key.first} << 40) ^ (std::uint64_t{key.count} << 20) ^
             (std::uint64_t{key.bucket.n_tokens} << 8) ^ key.bucket.n_outputs ^
             (std::uint64_t{key.bucket.n_positions} << 30) ^ (std::uint64_t{key.operand_set} << 63);
    }
  };

  CudaRing(const Driver& driver, bool fast) : driver_(driver), memory_(driver) { profile_.is_fast = fast; }
  Status open(std::uint32_t device);
  Status use_device() const { return driver_.check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }
  // Checks a submission before its graph is built: returns an error if an operand lies outside its buffer object or a
  // kernel does not exist.
  Status fits(const Submission& submission) const;
  // Returns a kernel function of an image. Loads the image on first use.
  Result<CUfunction> function(const std::string& image, const std::string& name);
  // Defined in cuda_graph.cpp:
  Result<Graph> build(const Submission& submission, StepDims bucket);
  // Returns the address of an operand in the set that the submission reads.
  std::byte* address(const Binding& binding, const Submission& submission) const {
    return memory_.address(binding) + operand_sets_.offset(binding.bo, submission.operand_set);
  }
  // The copies of host memory that a submission reads: where each value's copy is, and what step_begin has to copy.
  struct Copies {
    std::map<ValueId, const std::byte*> at;
    cuda::StepBeginArgs begin{};
  };
  Result<Copies> copies_of(const Submission& submission, StepDims bucket);
  Result<std::vector<Launch>> plan(const Submission& submission, StepDims bucket);
  // Asks the driver for the tensor map of a matrix at address w and writes it into the launch's arguments.
  Status encode(const Launch::Tensor& tensor, const void* w, Launch& launch) const;
  // Adds a launch to the graph that is being captured. after_another: it may overlap with the launch before it
  // (programmatic dependent launch).
  Status start(const Launch& launch, bool after_another);
  Status drop_graphs();
  Status drop_scratch();
  Status wait_for(std::uint64_t submission);
  // Returns the half of the staging memory that is free next, after its last upload has ended. Errors: kInvalidArgument
  // if `bytes` exceeds a half.
  Result<std::byte*> staging(std::uint64_t bytes);

  const Driver& driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  bool overlaps_launches_ = false;  // the device supports programmatic dependent launch
  DeviceProfile profile_;
  std::string description_;
  kernel::KernelTable table_{kernel::Target::kSm90};
  CudaMemory memory_;
  std::vector<LoadedKernel> kernels_;  // index: Kernel::id - 1
  std::unordered_map<std::string, CUmodule> modules_;
  std::unordered_map<std::string, CUfunction> functions_;
  // The limit of dynamic shared memory, in bytes, if it was raised.
  std::unordered_map<CUfunction, std::uint32_t> shared_limits_;
  std::unordered_map<Key, Graph, KeyHash> graphs_;

  // Memory that the host shares with the device: the numbers of the last kHeaders steps, and the word that counts
  // steps. Both are in pinned_. words_ is device memory: the header of the current step, and 256 bytes further the
  // number of completed steps.
  cuda::StepHeader* headers_ = nullptr;
  std::atomic<std::uint32_t>* done_ = nullptr;
  std::byte *pinned_ = nullptr, *words_ = nullptr;
  // scratch_: the memory in use; own_scratch_: null if scratch_ is a buffer object from the executor.
  std::byte *scratch_ = nullptr, *own_scratch_ = nullptr;
  std::uint64_t scratch_bytes_ = 0;
  OperandSets operand_sets_;
  // Staging for uploads and reads: pinned memory and device memory, in two halves, each with the event of its last use.
  std::byte *staging_ = nullptr, *device_staging_ = nullptr, *read_back_ = nullptr;
  std::uint64_t read_back_bytes_ = 0;
  CUevent staged_[2] = {};
  int next_half_ = 0;
  std::uint64_t submissions_ = 0, dispatches_ = 0;
  Status broken_;  // the first device fault; all later calls return it
};

// Returns the device to use. Errors: kUnavailable with the reason why none can be used.
Result<CUdevice> find_cuda_device(const Driver& driver, std::uint32_t index);

}  // namespace zinc_rt::ring
