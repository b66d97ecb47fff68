#include "ring/cpu/cpu_ring.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/platform/this_thread.h"
#include "base/platform/threads.h"
#include "kernels/cpu/quant/panels.h"
#include "ring/cpu/cpu_table.h"

namespace zinc_rt::ring {
namespace {

constexpr std::size_t kScratchAlign = 64;

}  // namespace

void CpuRing::Scratch::reserve(std::uint64_t bytes) {
  if (bytes <= bytes_) return;
  memory_.reset();
  memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes + kScratchAlign);
  bytes_ = bytes;
}

std::byte* CpuRing::Scratch::at() const {
  const auto at = reinterpret_cast<std::uintptr_t>(memory_.get());
  return memory_.get() + (kScratchAlign - at % kScratchAlign) % kScratchAlign;
}

CpuRing::CpuRing(int threads, const cpu::KernelSet& set, bool repack, bool is_fast)
    : set_(set),
      repack_(repack),
      is_fast_(is_fast),
      table_(make_cpu_table()),
      pool_(threads > 0 ? threads : usable_threads()),
      lds_(static_cast<std::size_t>(pool_.n_threads())) {
  while (works_.size() < 2) give_back(works_.emplace_back());  // one submission for each set of operands
  if (!kHasThreads) return;
  thread_ = std::thread([this] {
    name_thread("zrt-ring-cpu");
    run_queue();
  });
}

CpuRing::~CpuRing() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  submitted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status CpuRing::upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix) {
  if (!repack_) return Ring::upload(to, offset, matrix);
  ZRT_TRY(const auto memory, map(to));
  const std::uint64_t bytes = matrix.rows * row_bytes(matrix.dtype, matrix.k);
  if (matrix.data.size() != bytes || offset > memory.size() || bytes > memory.size() - offset)
    return fail(StatusCode::kInvalidArgument,
                "[t_cpu] a matrix of {} bytes, {} given, at {} leaves buffer object {} of {} bytes", bytes,
                matrix.data.size(), offset, to.id, memory.size());
  memory_.mark_packed(to);
  if (!cpu::has_panels(matrix.dtype)) return Ring::upload(to, offset, matrix);
  // The rows are divided into pieces of whole panels, so that threads can convert them independently. Rows after the
  // last whole panel belong to the last piece.
  const std::uint32_t n_panels = std::max(1u, matrix.rows / cpu::kPanelRows);
  const std::uint32_t n_pieces = std::min(n_panels, 4u * static_cast<std::uint32_t>(pool_.n_threads()));
  const auto first_row = [&](std::uint64_t piece) {
    return piece == n_pieces ? matrix.rows : static_cast<std::uint32_t>(piece * n_panels / n_pieces) * cpu::kPanelRows;
  };
  const std::uint64_t row = row_bytes(matrix.dtype, matrix.k);
  pool_.parallel_for(n_pieces, [&](std::uint64_t piece, int) {
    const std::uint32_t begin = first_row(piece), end = first_row(piece + 1);
    cpu::pack_matrix(matrix.dtype, end - begin, matrix.k, matrix.data.data() + begin * row,
                     memory.data() + offset + begin * row);
  });
  return {};
}

Result<Buffer> CpuRing::import_bo(Ring& owner, const Buffer& buffer) {
  ZRT_TRY(const auto memory, owner.map(buffer));
  return import_host(memory);
}

Result<Kernel> CpuRing::load_kernel(std::span<const std::byte> zrt) {
  ZRT_TRY(const auto file, kernel::read_zrt(zrt));
  if (file.target != kernel::Target::kCpu)
    return fail(StatusCode::kUnavailable, "[t_cpu] kernel {} is for {}, cpu wanted", file.name, to_string(file.target));
  ZRT_TRY(const auto* code, find_cpu_kernel(file));
  if (const auto symbol = file.unpatched(); !symbol.empty())
    return fail(StatusCode::kInvalidArgument, "[t_cpu] kernel {}: symbol {} is not patched", file.name, symbol);
  LoadedKernel loaded{code, std::vector<std::uint32_t>(file.symbols.size()), file.push_const_bytes, file.lds_bytes,
                      file.buffer_count};
  for (std::size_t i = 0; i < file.symbols.size(); ++i)
    std::memcpy(&loaded.symbols[i], file.code.data() + file.symbols[i].code_offset, 4);
  const std::uint64_t needed = code->lds_bytes != nullptr ? code->lds_bytes(loaded.symbols.data()) : 0;
  if (file.lds_bytes < needed)
    return fail(StatusCode::kInvalidArgument, "[t_cpu] kernel {} needs {} bytes of local memory, its header gives {}",
                file.name, needed, file.lds_bytes);
  kernels_.push_back(std::move(loaded));
  return Kernel{static_cast<std::uint32_t>(kernels_.size())};
}

Status CpuRing::use_operand_sets(const Buffer& buffer, std::uint64_t stride) {
  if (!operand_sets_.add(buffer.id, stride))
    return fail(StatusCode::kInvalidArgument, "[t_cpu] buffer object {} is one too many with two sets", buffer.id);
  return {};
}

void CpuRing::Work::reserve(std::size_t n_dispatches, std::size_t n_bindings) {
  kernels.reserve(n_dispatches);
  packed.reserve(n_dispatches);
  addresses.reserve(n_bindings);
}

CpuRing::Work& CpuRing::spare_work(const Submission& submission) {
  std::size_t n_bindings = 0;
  for (const Packet& packet : std::span(submission.batch->packets).subspan(submission.first, submission.count))
    n_bindings += packet.n_bindings;
  const std::lock_guard lock(mutex_);
  most_dispatches_ = std::max<std::size_t>(most_dispatches_, submission.count);
  most_bindings_ = std::max(most_bindings_, n_bindings);
  if (spare_ == nullptr) give_back(works_.emplace_back());
  for (Work* spare = spare_; spare != nullptr; spare = spare->next) spare->reserve(most_dispatches_, most_bindings_);
  Work& work = *spare_;
  spare_ = work.next;
  return work;
}

void CpuRing::give_back(Work& work) {
  work.reserve(most_dispatches_, most_bindings_);
  work.next = spare_;
  spare_ = &work;
}

// Looks up the kernels and addresses of a submission. REQUIRES: check_ranges() accepted the submission.
Status CpuRing::fill(Work& work) const {
  const auto& batch = *work.submission.batch;
  work.kernels.clear();
  work.addresses.clear();
  work.packed.clear();
  work.lds_bytes = 0;
  for (std::uint32_t i = 0; i < work.submission.count; ++i) {
    const Packet& packet = batch.packets[work.submission.first + i];
    if (packet.kernel.id == 0 || packet.kernel.id > kernels_.size())
      return fail(StatusCode::kInvalidArgument, "[t_cpu] kernel {} is not loaded, {} are", packet.kernel.id,
                  kernels_.size());
    const LoadedKernel& kernel = kernels_[packet.kernel.id - 1];
    if (packet.push_bytes != kernel.push_bytes)
      return fail(StatusCode::kInvalidArgument, "[t_cpu] {} has {} bytes of push constants, its kernel wants {}",
                  to_string(packet.op), packet.push_bytes, kernel.push_bytes);
    if (packet.n_bindings != kernel.n_bindings)
      return fail(StatusCode::kInvalidArgument, "[t_cpu] {} has {} bindings, its kernel wants {}", to_string(packet.op),
                  packet.n_bindings, kernel.n_bindings);
    work.kernels.push_back(&kernel);
    work.lds_bytes = std::max(work.lds_bytes, kernel.lds_bytes);
    std::uint32_t packed = 0;
    for (std::uint32_t b = 0; b < packet.n_bindings; ++b) {
      Binding binding = batch.bindings[packet.first_binding + b];
      binding.offset += operand_sets_.offset(binding.bo, work.submission.operand_set);
      if (!memory_.holds(binding)) return memory_.refuse(binding);
      work.addresses.push_back(memory_.address(binding));
      if (b < 32 && memory_.is_packed(binding)) packed |= 1u << b;
    }
    work.packed.push_back(packed);
  }
  return {};
}

Result<Fence> CpuRing::submit(const Submission& submission) {
  ZRT_CHECK_OK(check_ranges(submission));
  Work& work = spare_work(submission);
  work.submission = submission;
  const auto status = fill(work);
  const std::lock_guard lock(mutex_);
  if (!status) {
    give_back(work);
    return std::unexpected(status.error());
  }
  work.fence = ++last_fence_;
  work.next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = &work;
  last_ = &work;
  submitted_.notify_one();
  return Fence{last_fence_};
}

Status CpuRing::wait(Fence fence) {
  std::unique_lock lock(mutex_);
  ZRT_CHECK_OK(check_fence("t_cpu", fence, last_fence_));
  if (!kHasThreads) {
    while (retired_fence_ < fence.value) execute_first(lock);
    return {};
  }
  retired_.wait(lock, [&] { return retired_fence_ >= fence.value; });
  return {};
}

void CpuRing::run_queue() {
  std::unique_lock lock(mutex_);
  for (;;) {
    submitted_.wait(lock, [&] { return stop_ || first_ != nullptr; });
    if (first_ == nullptr) return;
    execute_first(lock);
    retired_.notify_all();
  }
}

void CpuRing::execute_first(std::unique_lock<std::mutex>& lock) {
  Work& work = *first_;
  first_ = work.next;
  lock.unlock();
  execute(work);
  lock.lock();
  retired_fence_ = work.fence;
  give_back(work);
}

// Executes a submission. Packets run one after another in their order, which satisfies every edge.
void CpuRing::execute(const Work& work) {
  const auto& batch = *work.submission.batch;
  const StepDims dims = work.submission.dims;
  const std::uint32_t* packed = work.packed.data();
  void* const* addresses = work.addresses.data();
  // Scratch memory is reserved for all threads at once, because any thread may run a workgroup of this dispatch.
  for (auto& lds : lds_) lds.reserve(work.lds_bytes);
  std::uint64_t dispatched = 0;
  for (std::uint32_t i = 0; i < work.submission.count; ++i) {
    const Packet& packet = batch.packets[work.submission.first + i];
    const LoadedKernel& kernel = *work.kernels[dispatched];
    const std::uint64_t nx = packet.grid[0].count(dims), ny = packet.grid[1].count(dims),
                        nz = packet.grid[2].count(dims);
    const auto args_of = [&](std::uint64_t x, std::uint64_t y, std::uint64_t z, int worker) {
      return cpu::CpuArgs{addresses,
                          kernel.symbols.data(),
                          batch.push.data() + packet.first_push,
                          dims.n_tokens,
                          dims.n_outputs,
                          {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)},
                          lds_[static_cast<std::size_t>(worker)].at(),
                          shared_.at(),
                          &set_,
                          *packed,
                          static_cast<std::uint32_t>(pool_.n_threads())};
    };
    if (kernel.code->prepare != nullptr) {
      const auto args = args_of(0, 0, 0, 0);
      shared_.reserve(kernel.code->shared_bytes(args));
      pool_.parallel_for(kernel.code->n_prepare(args),
                         [&](std::uint64_t i, int worker) { kernel.code->prepare(args_of(i, 0, 0, worker)); });
    }
    pool_.parallel_for(nx * ny * nz, [&](std::uint64_t i, int worker) {
      kernel.code->run(args_of(i % nx, i / nx % ny, i / nx / ny, worker));
    });
    addresses += packet.n_bindings;
    ++packed;
    ++dispatched;
  }
  const std::lock_guard lock(mutex_);
  dispatches_ += dispatched;
}

RingStats CpuRing::stats() const {
  const std::lock_guard lock(mutex_);
  return {memory_.allocated_bytes(), memory_.imported_bytes(), last_fence_, dispatches_};
}

std::string CpuRing::describe() const {
  return fmt::format("host processor, {} threads, kernels {}", pool_.n_threads(), set_.name);
}

}  // namespace zinc_rt::ring
