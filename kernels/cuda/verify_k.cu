// VERIFY_K: counts how many of the k drafted tokens of each request are accepted. Draft i is accepted if it is the
// largest logit of row i and all drafts before it were accepted. Grid: one workgroup per request.
#include "kernels/cuda/device.cuh"

using namespace zinc_rt::cuda;

extern "C" __global__ void verify_k(const __grid_constant__ OpArgs args) {
  __shared__ uint32_t shared[64];
  wait_for_inputs();
  let_next_start();
  if (blockIdx.x >= args.dim(symbol::VerifyK::rows)) return;
  const uint32_t k = args.dim(symbol::VerifyK::k), v = args.dim(symbol::VerifyK::v);
  const int32_t* draft = args.buffer<const int32_t>(binding::VerifyK::draft) + static_cast<uint64_t>(blockIdx.x) * k;
  const float* logits = args.buffer<const float>(binding::VerifyK::logits) + static_cast<uint64_t>(blockIdx.x) * k * v;
  uint32_t accepted = 0;
  while (accepted < k &&
         static_cast<uint32_t>(draft[accepted]) == argmax_row(logits + static_cast<uint64_t>(accepted) * v, v, shared))
    ++accepted;
  if (threadIdx.x == 0) args.buffer<int32_t>(binding::VerifyK::accept_len)[blockIdx.x] = static_cast<int32_t>(accepted);
}
