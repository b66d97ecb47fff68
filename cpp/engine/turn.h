// Turn is a fair lock on the replicas of a device. Either the step thread holds it for one step, or another thread
// holds it between two steps. A thread that holds the lock "holds the turn". Threads get it in the order in which they
// called Guard's constructor. So another thread waits for at most one step, and many other threads cannot keep the step
// thread out.
// Thread rule: any thread; not recursive.
#pragma once

#include <atomic>
#include <cstdint>

namespace zinc_rt {

class Turn {
 public:
  class Guard {
   public:
    explicit Guard(Turn& turn) : turn_(turn) {
      const std::uint32_t mine = turn_.next_.fetch_add(1, std::memory_order_relaxed);
      for (auto now = turn_.serving_.load(std::memory_order_acquire); now != mine;
           now = turn_.serving_.load(std::memory_order_acquire))
        turn_.serving_.wait(now, std::memory_order_acquire);
    }
    ~Guard() {
      turn_.serving_.fetch_add(1, std::memory_order_release);
      turn_.serving_.notify_all();
    }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Turn& turn_;
  };

 private:
  std::atomic<std::uint32_t> next_{0}, serving_{0};
};

}  // namespace zinc_rt
