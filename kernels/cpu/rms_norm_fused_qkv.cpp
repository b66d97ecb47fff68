// RMS_NORM_FUSED_QKV: h = RMS_NORM(x, norm_w); h is quantized as each weight's format wants (quantize = 1) or kept
// float (0); then q = LINEAR(h, q_w, q_b), k = LINEAR(h, k_w, k_b), v = LINEAR(h, v_w, v_b). Shapes: x [n, d]; q_w [nq,
// d], k_w [nk, d], v_w [nv, d]; q [n, nq], k [n, nk], v [n, nv]. Order: that of the three ops, so the bits are theirs.
// A workgroup holds a tile of rows of q, k and v laid end to end.
#include <algorithm>
#include <array>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

constexpr std::uint32_t kTile = 64;

NormArgs norm_of(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNormFusedQkv>();
  return {args.buffer<const float>(0), args.buffer<const float>(1), args.dim(0), args.dim(1), c.eps, c.quantize != 0};
}

std::array<NormLinearPart, 3> parts_of(const CpuArgs& args) {
  std::array<NormLinearPart, 3> parts;
  for (std::uint32_t i = 0; i < 3; ++i) {
    const std::uint32_t rows = args.dim(2 + i);
    parts[i] = {args.buffers[2 + i],
                static_cast<DType>(args.symbols[5 + i]),
                args.is_packed(2 + i),
                args.buffer<const float>(5 + i),
                args.buffer<float>(8 + i),
                rows,
                std::min(rows, args.wg[0] * kTile),
                std::min(rows, (args.wg[0] + 1) * kTile)};
  }
  return parts;
}

void prepare(const CpuArgs& args) {
  norm_linear_prepare(args, norm_of(args), parts_of(args));
}

void run(const CpuArgs& args) {
  norm_linear(args, norm_of(args), parts_of(args));
}

std::uint64_t lds(const std::uint32_t* s) {
  return norm_linear_lds(s[1]);
}

std::uint32_t n_tokens(const CpuArgs& args) {
  return args.dim(0);
}

std::uint64_t shared(const CpuArgs& args) {
  return args.dim(0) * norm_linear_shared(args.dim(1));
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm_fused_qkv;
const CpuKernel kCpuKernel_rms_norm_fused_qkv{
    "RMS_NORM_FUSED_QKV",
    run,
    {"dim:n", "dim:d", "dim:nq", "dim:nk", "dim:nv", "dtype:q_w", "dtype:k_w", "dtype:v_w"},
    {{"nq", kTile}, {}},
    KeyTypes::kWeights,
    lds,
    prepare,
    n_tokens,
    shared};

}  // namespace zinc_rt::cpu
