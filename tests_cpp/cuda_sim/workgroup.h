// Runs a grid of a kernel on the host, one workgroup after another, each CUDA thread a fiber that runs until it waits
// for others. What a GPU leaves undefined ends the program with a message: threads that wait for each other for ever, a
// lane that is not in its own mask, a shuffle from a lane that is not there.
// Thread rule: one grid at a time (the driver's lock); kernels call these functions from its fibers alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_sim {

struct Index {
  std::uint32_t x = 0, y = 0, z = 0;
};
// Of the fiber that runs.
struct Place {
  Index thread, block, block_dim, grid_dim;
  std::byte* shared = nullptr;  // dynamic shared memory, filled with NaN when a workgroup begins
};
extern Place here;

// A thread that waits for what others do lets them run, and asks again.
void yield();
// __syncthreads: threads that have ended are not waited for.
void sync_threads();

// All lanes of `mask` of a warp meet, and each sees what every one of them brought: [32], to be read before the lane's
// next meeting.
struct Words {
  std::uint32_t w[8];
};
const Words* exchange(std::uint32_t mask, const Words& own);

// A copy that ends later, when other threads have run, and often not in the order in which copies were asked for.
struct Copy {
  void* to;
  const void* from;
  std::uint32_t bytes;
  std::uint64_t* barrier;
};
void copy_later(const Copy& copy, void (*end)(const Copy& copy));

[[noreturn]] void stop(const char* what);

// What the driver here makes of a tensor of numbers of two bytes, in boxes of box_rows rows by 64 numbers that are
// swizzled by 128 bytes. strides: bytes of the second dimension and the third.
struct Tensor {
  const std::uint8_t* at;
  std::uint64_t dims[3], strides[2];
  std::uint32_t box_rows;
};

// A kernel of an image: its one argument is args_bytes at `args`.
struct Kernel {
  const char* name;
  std::size_t args_bytes;
  void (*call)(const void* args);
};
void run_grid(const Kernel& kernel, const void* args, Index grid, Index block, std::size_t shared_bytes);

}  // namespace cuda_sim
