// Computes VERIFY_K: accept_len[b] is the length of the longest prefix of draft b in which each token has the largest
// of its logits (defined by kernels/cpu/verify_k.cpp). Each workgroup is one wave and computes one draft.
#include "kernels/rdna/largest.h"

ZRT_KERNEL(verify_k, 32) {
  using namespace zinc_rt;
  using namespace zinc_rt::rdna;
  using Operand = operand::VerifyK;
  const uint32_t k = dim(args, symbol::VerifyK::k), v = dim(args, symbol::VerifyK::v), b = group(0);
  const int32_t* draft = buffer<const int32_t>(args, Operand::draft) + (uint64_t)b * k;
  const float* logits = buffer<const float>(args, Operand::logits) + (uint64_t)b * k * v;
  uint32_t accepted = 0;
  while (accepted < k && (uint32_t)draft[accepted] == largest_index(logits + (uint64_t)accepted * v, v)) ++accepted;
  if (thread() == 0) buffer<int32_t>(args, Operand::accept_len)[b] = (int32_t)accepted;
}
