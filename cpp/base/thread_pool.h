// Worker threads for one caller at a time: parallel_for splits a range over them and over the caller.
// Waiting workers spin for a bounded number of turns, then sleep in the kernel: an idle pool costs no processor time.
// Thread rule: parallel_for may be called from one thread at a time; the body is called from several at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace zinc_rt {

class ThreadPool {
 public:
  explicit ThreadPool(int n_threads);  // n_threads - 1 workers are started; at least 1
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(index, worker) once for each index in [0, n), worker in [0, n_threads); returns when all calls have.
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
  using Call = void (*)(void* context, std::uint64_t index, int worker);
  void run(std::uint64_t n, Call call, void* context);
  void work(int worker);
  void take_items(int worker);

  std::vector<std::thread> workers_;
  std::atomic<std::uint32_t> epoch_{0};  // grows with each range, and at the end
  // Indices that nobody has claimed, and those whose calls have not returned. A range is over when the second is 0, so
  // a worker that was not scheduled in time holds nobody up: it finds nothing to claim. What follows is written while
  // both are 0, and read by those who hold a claim.
  std::atomic<std::uint64_t> unclaimed_{0}, unfinished_{0};
  std::atomic<bool> stop_{false};
  std::uint64_t n_ = 0;
  Call call_ = nullptr;
  void* context_ = nullptr;
};

// Threads that this process may use: its affinity mask, bounded by the cgroup's processor quota.
int usable_threads();

}  // namespace zinc_rt
