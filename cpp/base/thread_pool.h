// ThreadPool runs worker threads that serve one caller at a time. parallel_for() splits a range of indices over the
// workers and the caller. A waiting thread spins for about 20 us, then sleeps in the kernel, so an idle pool takes no
// processor time.
// Thread rule: parallel_for may be called from one thread at a time; the body is called from several at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace zinc_rt {

class ThreadPool {
 public:
  // n_threads is at least 1; starts n_threads - 1 workers, because the caller works too.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(index, worker) once for each index in [0, n), with worker in [0, n_threads). Returns when all calls have
  // returned. Each worker has a block of indices, which is the same in each call with the same n. So calls with equal n
  // touch the same memory on the same thread. A worker first takes the indices of its own block, then indices that are
  // left in other blocks.
  template <class Body>
  void parallel_for(std::uint64_t n, Body&& body) {
    run(
        n,
        [](void* context, std::uint64_t index, int worker) {
          (*static_cast<std::remove_reference_t<Body>*>(context))(index, worker);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  // Members that different threads write are this many bytes apart. These are two cache lines, because processors fetch
  // lines in pairs.
  static constexpr std::size_t kLine = 128;
  using Call = void (*)(void* context, std::uint64_t index, int worker);
  struct alignas(kLine) Block {
    std::atomic<std::uint64_t> unclaimed{0};  // how many indices at the block's end no worker has claimed yet
  };

  void run(std::uint64_t n, Call call, void* context);
  void work(int worker);
  void take_items(int worker);
  std::uint64_t take_block(int block, int worker);
  std::uint32_t wait_for_range(std::uint32_t seen);
  void wait_for_end();
  // Returns the first index of a block. The first n_ % n_blocks_ blocks get one index more than the others.
  std::uint64_t block_begin(std::uint64_t block) const {
    return block * (n_ / n_blocks_) + std::min(block, n_ % n_blocks_);
  }

  std::vector<std::thread> workers_;
  std::unique_ptr<Block[]> blocks_;  // there is one block per thread
  int n_spins_ = 0;

  // Only the caller of parallel_for() writes these members. The members that are not atomic are written only while
  // unfinished_ is 0. Another thread reads them only between claiming an index and the return of the body's call for
  // this index.
  alignas(kLine) std::atomic<std::uint32_t> epoch_{0};  // grows by one with each parallel_for() and in the destructor
  std::atomic<bool> stop_{false};
  std::uint32_t range_ = 0;  // value of epoch_ for the current range; written before epoch_
  std::uint64_t n_ = 0, n_blocks_ = 1;
  Call call_ = nullptr;
  void* context_ = nullptr;

  // Counts the workers that sleep in the kernel. Workers change it when they go to sleep or wake up.
  alignas(kLine) std::atomic<std::uint32_t> n_asleep_{0};

  // Counts the indices whose call has not returned. The range ends when it reaches 0. A worker that the system
  // schedules too late delays nobody, because it finds no index to claim. The thread that decreases the number to 0
  // writes the range's epoch to ended_ for the caller.
  alignas(kLine) std::atomic<std::uint64_t> unfinished_{0};
  std::atomic<std::uint32_t> ended_{0};
  std::atomic<bool> caller_sleeps_{false};
};

// Returns the default number of threads for compute-bound work: Processors::n_threads() (base/processors.h).
int usable_threads();

}  // namespace zinc_rt
