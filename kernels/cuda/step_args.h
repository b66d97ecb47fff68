// Arguments of step_begin and step_end, the first and last kernel of every step, and of repack, which reorders weights
// at upload. Shared by host and device; POD, C++17.
#pragma once

#include "kernels/cuda/op_args.h"

namespace zinc_rt::cuda {

// A copy of `words` 32-bit words from host to device memory, made by step_begin. Later kernels of the step then read
// device memory, because each read over the bus takes more than a microsecond.
struct CopyJob {
  const uint32_t* from;
  uint32_t* to;
  uint32_t words;
};
// A copy of the used part of a page table [slots, width]: for each token, step_begin copies the pages of its slot up to
// its position.
struct PageJob {
  const int32_t *from, *pos, *slot;  // pos and slot are [room] values: the position and slot of each token of the step.
  int32_t* to;
  uint32_t width, room;
};
constexpr uint32_t kMaxCopyJobs = 24, kMaxPageJobs = 2, kHeaders = 256, kBeginThreads = 1024;
// Arguments of step_begin. Grid: one workgroup per copy, then one per page table; at least one workgroup in all.
struct StepBeginArgs {
  const StepHeader* headers;  // A ring of kHeaders headers in host memory. Step i reads entry i % kHeaders.
  // The step's header in device memory, which all later kernels of the step read.
  StepHeader* header;
  const uint32_t* n_steps;  // Device memory: the number of steps that have completed.
  uint32_t n_copies, n_pages;
  CopyJob copies[kMaxCopyJobs];
  PageJob pages[kMaxPageJobs];
};
// Arguments of step_end, which adds 1 to the number of completed steps.
struct StepEndArgs {
  uint32_t* n_steps;
  uint32_t* done;  // Host memory that the host polls: the number of completed steps.
};

// Arguments of repack: copies a piece of a weight matrix from the file's layout to the kernels' layout (weights.cuh).
struct RepackArgs {
  const void* from;
  void* to;
  uint32_t rows, k;
  uint32_t matrix_rows;  // Rows of the whole matrix, of which `rows` are in this piece.
};

}  // namespace zinc_rt::cuda
