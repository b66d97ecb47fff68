// Counts what a stretch of code allocates by operator new, on any thread or on one. This header replaces the global
// operators: one source file of a test program includes it, and the whole program has them. Thread rule: the counter
// may be read and armed from any thread; one AllocationCount lives at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace zinc_rt {

inline std::atomic<bool> count_allocations{false};
inline std::atomic<std::uint64_t> n_allocations{0};
inline std::atomic<std::size_t> largest_allocation{0};       // bytes; of what is counted
inline thread_local std::uint64_t n_thread_allocations = 0;  // of this thread, armed or not

// Counts from its making to its end.
class AllocationCount {
 public:
  AllocationCount() {
    n_allocations.store(0);
    largest_allocation.store(0);
    count_allocations.store(true);
  }
  ~AllocationCount() { count_allocations.store(false); }
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  std::uint64_t so_far() const { return n_allocations.load(); }
  std::size_t largest() const { return largest_allocation.load(); }
};

}  // namespace zinc_rt

// A sanitizer's own operators find more than ours would count.
#if defined(ZRT_SANITIZED)
#define ZRT_NEED_ALLOCATION_COUNT() GTEST_SKIP() << "a sanitizer owns operator new in this build"
#else
#define ZRT_NEED_ALLOCATION_COUNT() static_cast<void>(0)

namespace zinc_rt {

// Tests have no use for going on without memory.
[[gnu::noinline]] inline void* counted_allocation(std::size_t bytes, std::size_t alignment) {
  ++n_thread_allocations;
  if (count_allocations.load(std::memory_order_relaxed)) {
    n_allocations.fetch_add(1, std::memory_order_relaxed);
    auto seen = largest_allocation.load(std::memory_order_relaxed);
    while (bytes > seen && !largest_allocation.compare_exchange_weak(seen, bytes)) {
    }
  }
  const std::size_t size = (bytes + alignment) / alignment * alignment;  // a multiple, as aligned_alloc wants; never 0
  void* memory = std::aligned_alloc(alignment, size);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] inline void free_counted(void* memory) {
  std::free(memory);
}

}  // namespace zinc_rt

// The array and nothrow forms of the library end in these.
void* operator new(std::size_t bytes) {
  return zinc_rt::counted_allocation(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return zinc_rt::counted_allocation(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  zinc_rt::free_counted(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  zinc_rt::free_counted(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  zinc_rt::free_counted(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  zinc_rt::free_counted(memory);
}
#endif
