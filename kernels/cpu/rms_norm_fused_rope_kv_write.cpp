// RMS_NORM_FUSED_ROPE_KV_WRITE: for each token q_out = ROPE(RMS_NORM(q, q_norm)), k' = ROPE(RMS_NORM(k, k_norm)), then
// KV_WRITE_BATCHED(k', v). The norms are per head and left out where their weight is absent. Shapes: as ROPE and
// KV_WRITE_BATCHED; q_norm, k_norm [head_dim]. Order: that of the ops, so the bits are theirs.
#include <cmath>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNormFusedRopeKvWrite>();
  const std::uint32_t nq = args.dim(0), nk = args.dim(1), nv = args.dim(2), pages_per_slot = args.dim(3),
                      rows = args.dim(4), t = args.wg[0];
  const auto kv = static_cast<DType>(args.symbols[5]);
  const auto pos = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(5)[t]);
  auto* k = reinterpret_cast<float*>(args.lds);
  float* q_out = args.buffer<float>(11) + std::uint64_t{t} * nq;
  const float* table = pos < rows ? args.buffer<const float>(7) + std::uint64_t{pos} * c.n_rot : nullptr;
  const auto norm_and_rotate = [&](const float* x, const float* w, float* y, std::uint32_t d) {
    if (w != nullptr) rms_norm_row(x, w, y, d, c.head_dim, c.eps, args.set);
    if (table != nullptr) {
      rope_row(w != nullptr ? y : x, table, y, d, c.head_dim, c.n_rot, c.neox != 0, args.set);
    } else {
      for (std::uint32_t i = 0; i < d; ++i) y[i] = NAN;
    }
  };
  norm_and_rotate(args.buffer<const float>(0) + std::uint64_t{t} * nq, args.buffer<const float>(3), q_out, nq);
  norm_and_rotate(args.buffer<const float>(1) + std::uint64_t{t} * nk, args.buffer<const float>(4), k, nk);
  const auto* pages = args.buffer<const std::int32_t>(8) +
                      static_cast<std::uint64_t>(args.buffer<const std::int32_t>(6)[t]) * pages_per_slot;
  kv_store_row(k, kv_cell(args.buffers[9], pages, pos, args.symbols[6], row_bytes(kv, nk)), nk, kv);
  kv_store_row(args.buffer<const float>(2) + std::uint64_t{t} * nv,
               kv_cell(args.buffers[10], pages, pos, args.symbols[7], row_bytes(kv, nv)), nv, kv);
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm_fused_rope_kv_write;
const CpuKernel kCpuKernel_rms_norm_fused_rope_kv_write{
    "RMS_NORM_FUSED_ROPE_KV_WRITE",
    run,
    {"dim:nq", "dim:nk", "dim:nv", "dim:m", "dim:p", "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"},
    {{"n"}, {}},
    KeyTypes::kKv,
    [](const std::uint32_t* s) { return std::uint64_t{s[1]} * 4; }};

}  // namespace zinc_rt::cpu
