// The kernels that begin and end a step, and the one that lays weights out. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/op_args.h"

namespace zinc_rt::cuda {

// step_begin: copies what a step reads out of host memory, and takes the step's numbers from a ring of them.
struct CopyJob {
  const uint32_t* from;
  uint32_t* to;
  uint32_t words;
};
// Of a page table [slots, width]: for each token the pages up to its position.
struct PageJob {
  const int32_t *from, *pos, *slot;  // pos, slot: [room]
  int32_t* to;
  uint32_t width, room;
};
constexpr uint32_t kMaxCopyJobs = 24, kMaxPageJobs = 2, kHeaders = 256, kBeginThreads = 1024;
// Grid: a workgroup a copy, then one for each page table, at least one.
struct StepBeginArgs {
  const StepHeader* headers;  // [kHeaders], host memory
  StepHeader* header;
  const uint32_t* n_steps;  // device memory: steps so far
  uint32_t n_copies, n_pages;
  CopyJob copies[kMaxCopyJobs];
  PageJob pages[kMaxPageJobs];
};
struct StepEndArgs {
  uint32_t* n_steps;
  uint32_t* done;  // host memory: the steps that are complete
};

// repack: a matrix from a file's layout to that of the kernels (weights.cuh).
struct RepackArgs {
  const void* from;
  void* to;
  uint32_t rows, k;
  uint32_t matrix_rows;  // of all pieces of the matrix
};

}  // namespace zinc_rt::cuda
