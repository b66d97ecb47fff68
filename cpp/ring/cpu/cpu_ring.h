// CpuRing is the ring of T-CPU. It walks the packets on a thread of its own and runs each dispatch's workgroups on a
// thread pool. Where the system has no threads, wait() does all of this.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "base/thread_pool.h"
#include "kernels/cpu/kernel.h"
#include "ring/host_memory.h"
#include "ring/operand_sets.h"
#include "ring/ring.h"

namespace zinc_rt::ring {

class CpuRing final : public Ring {
 public:
  // repack: upload() stores quantized weights as row panels, which the kernel set must be able to read. is_fast: the
  // set has kernels of arithmetic `fast`.
  CpuRing(int threads, const cpu::KernelSet& set, bool repack, bool is_fast = false);
  ~CpuRing() override;

  Result<Fence> submit(const Submission& submission) override;
  Status wait(Fence fence) override;
  Result<std::span<std::byte>> map(const Buffer& buffer) override { return memory_.map(buffer); }
  Result<Buffer> alloc_bo(std::uint64_t bytes, Heap heap) override { return memory_.alloc(bytes, heap); }
  void free_bo(const Buffer& buffer) override { memory_.free(buffer); }
  bool repacks_weights() const override { return repack_; }
  bool is_fast() const override { return is_fast_; }
  bool has_operand_sets() const override { return true; }
  Status use_operand_sets(const Buffer& buffer, std::uint64_t stride) override;
  Status upload(const Buffer& to, std::uint64_t offset, const WeightMatrix& matrix) override;
  Result<Kernel> load_kernel(std::span<const std::byte> zrt) override;
  Result<Buffer> import_host(std::span<const std::byte> memory) override { return memory_.import_host(memory); }
  Result<Buffer> import_bo(Ring& owner, const Buffer& buffer) override;
  const kernel::KernelTable& kernels() const override { return table_; }
  RingStats stats() const override;
  std::string describe() const override;

 private:
  struct LoadedKernel {
    const cpu::CpuKernel* code = nullptr;
    std::vector<std::uint32_t> symbols;
    std::uint32_t push_bytes = 0, lds_bytes = 0, n_bindings = 0;
  };
  // Scratch memory, aligned to 64 bytes. It only grows, and its contents are lost when it grows. Bytes that are never
  // used take no physical memory.
  class Scratch {
   public:
    void reserve(std::uint64_t bytes);
    std::byte* at() const;

   private:
    std::unique_ptr<std::byte[]> memory_;
    std::uint64_t bytes_ = 0;
  };
  // Work is a submission with its kernels and addresses looked up. The ring's thread executes it.
  struct Work {
    Submission submission;
    std::vector<const LoadedKernel*> kernels;  // one per dispatch
    std::vector<void*> addresses;              // one per binding of the dispatches
    std::vector<std::uint32_t> packed;         // one per dispatch: CpuArgs::packed
    std::uint32_t lds_bytes = 0;               // the largest lds_bytes of all dispatches
    std::uint64_t fence = 0;
    Work* next = nullptr;  // the next Work in the queue, or in the list of spare Works

    void reserve(std::size_t n_dispatches, std::size_t n_bindings);
  };
  // A Work with room for a submission.
  Work& spare_work(const Submission& submission);
  Status fill(Work& work) const;
  void give_back(Work& work);
  void run_queue();
  // Takes the first submission out of the queue and executes it. `lock` holds mutex_ before and after. REQUIRES: the
  // queue is not empty.
  void execute_first(std::unique_lock<std::mutex>& lock);
  void execute(const Work& work);

  const cpu::KernelSet& set_;
  const bool repack_, is_fast_;
  kernel::KernelTable table_;
  HostMemory memory_;
  OperandSets operand_sets_;
  std::deque<LoadedKernel> kernels_;  // index: id - 1; a deque, because Works in flight hold pointers to its elements
  ThreadPool pool_;
  std::vector<Scratch> lds_;  // one per thread of the pool
  Scratch shared_;            // CpuArgs::shared of the dispatch that runs

  mutable std::mutex mutex_;
  std::condition_variable submitted_, retired_;
  // Work objects are reused together with the capacity of their vectors. Each spare Work has room for the largest
  // submission so far, because chance decides which Work is spare. So submit() allocates only for a submission that is
  // larger than all before it, and where more submissions are in flight than ever before.
  std::deque<Work> works_;
  std::size_t most_dispatches_ = 0, most_bindings_ = 0;  // of a submission
  Work *first_ = nullptr, *last_ = nullptr;              // the queue of submitted work
  Work* spare_ = nullptr;
  std::uint64_t last_fence_ = 0, retired_fence_ = 0, dispatches_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace zinc_rt::ring
