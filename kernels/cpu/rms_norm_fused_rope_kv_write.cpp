// This is the CPU reference kernel of the op RMS_NORM_FUSED_ROPE_KV_WRITE. For each token it computes q_out =
// ROPE(RMS_NORM(q, q_norm)) and k' = ROPE(RMS_NORM(k, k_norm)), then KV_WRITE_BATCHED(k', v). The norms are per head. A
// norm whose weight is absent is left out.
// Shapes: as in ROPE and KV_WRITE_BATCHED; q_norm, k_norm [head_dim] or absent.
// Order of sums: that of the unfused ops, so the bits are theirs.
#include <cmath>

#include "base/name_list.h"
#include "kernels/common/operands.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/ops.h"

namespace zinc_rt::cpu {
namespace {

using Operand = operand::RmsNormFusedRopeKvWrite;
constexpr NameList kSymbols{"dim:nq",     "dim:nk",     "dim:nv",     "dim:m",     "dim:p",
                            "dtype:kv_k", "dtype:kv_v", "pitch:kv_k", "pitch:kv_v"};

void run(const CpuArgs& args) {
  const auto& c = args.constants<push::RmsNormFusedRopeKvWrite>();
  const std::uint32_t nq = args.dim(kSymbols["dim:nq"]), nk = args.dim(kSymbols["dim:nk"]),
                      nv = args.dim(kSymbols["dim:nv"]), pages_per_slot = args.dim(kSymbols["dim:m"]),
                      rows = args.dim(kSymbols["dim:p"]), t = args.wg[0];
  const auto pos = static_cast<std::uint32_t>(args.buffer<const std::int32_t>(Operand::pos)[t]);
  auto* k = reinterpret_cast<float*>(args.lds);
  float* q_out = args.buffer<float>(Operand::q_out) + std::uint64_t{t} * nq;
  const float* table = pos < rows ? args.buffer<const float>(Operand::table) + std::uint64_t{pos} * c.n_rot : nullptr;
  const auto norm_and_rotate = [&](const float* x, const float* w, float* y, std::uint32_t d) {
    if (w != nullptr) rms_norm_row(x, w, y, d, c.head_dim, c.eps, args.set);
    if (table != nullptr) {
      rope_row(w != nullptr ? y : x, table, y, d, c.head_dim, c.n_rot, c.neox != 0, args.set);
    } else {
      for (std::uint32_t i = 0; i < d; ++i) y[i] = NAN;
    }
  };
  norm_and_rotate(args.buffer<const float>(Operand::q) + std::uint64_t{t} * nq,
                  args.buffer<const float>(Operand::q_norm), q_out, nq);
  norm_and_rotate(args.buffer<const float>(Operand::k) + std::uint64_t{t} * nk,
                  args.buffer<const float>(Operand::k_norm), k, nk);
  const auto* pages = args.buffer<const std::int32_t>(Operand::page_table) +
                      static_cast<std::uint64_t>(args.buffer<const std::int32_t>(Operand::slot)[t]) * pages_per_slot;
  const std::uint32_t n_heads = nk / c.head_dim;
  kv_store(k,
           {args.buffers[Operand::kv_k], static_cast<DType>(args.symbols[kSymbols["dtype:kv_k"]]),
            args.symbols[kSymbols["pitch:kv_k"]], n_heads, c.head_dim, true},
           pages, pos);
  kv_store(args.buffer<const float>(Operand::v) + std::uint64_t{t} * nv,
           {args.buffers[Operand::kv_v], static_cast<DType>(args.symbols[kSymbols["dtype:kv_v"]]),
            args.symbols[kSymbols["pitch:kv_v"]], n_heads, nv / n_heads, false},
           pages, pos);
}

}  // namespace

extern const CpuKernel kCpuKernel_rms_norm_fused_rope_kv_write;
const CpuKernel kCpuKernel_rms_norm_fused_rope_kv_write{
    "RMS_NORM_FUSED_ROPE_KV_WRITE", run, kSymbols, {{"n"}, {}}, KeyTypes::kKv, [](const std::uint32_t* s) {
      return std::uint64_t{s[kSymbols["dim:nk"]]} * 4;
    }};

}  // namespace zinc_rt::cpu
