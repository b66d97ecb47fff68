// Whose turn it is with the models: the step thread's, step by step, or a guest's, who asks for one between two steps.
// A guest waits for one step at most, however busy the engine is.
// Thread rule: any thread.
#pragma once

#include <atomic>
#include <mutex>

namespace zinc_rt {

class Turn {
 public:
  // The step thread's: lets guests go first.
  std::unique_lock<std::mutex> take() {
    for (auto n = guests_.load(std::memory_order_acquire); n > 0; n = guests_.load(std::memory_order_acquire))
      guests_.wait(n, std::memory_order_acquire);
    return std::unique_lock(mutex_);
  }

  class Guest {
   public:
    explicit Guest(Turn& turn) : turn_(turn) {
      turn_.guests_.fetch_add(1, std::memory_order_acq_rel);
      turn_.mutex_.lock();
    }
    ~Guest() {
      turn_.mutex_.unlock();
      turn_.guests_.fetch_sub(1, std::memory_order_acq_rel);
      turn_.guests_.notify_all();
    }
    Guest(const Guest&) = delete;
    Guest& operator=(const Guest&) = delete;

   private:
    Turn& turn_;
  };

 private:
  std::mutex mutex_;
  std::atomic<int> guests_{0};
};

}  // namespace zinc_rt
