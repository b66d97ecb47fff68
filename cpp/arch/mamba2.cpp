#include "arch/mamba2.h"

#include "base/error.h"
#include "kernels/common/push.h"

namespace zinc_rt::arch {

bool check_mamba2(Builder& b) {
  const auto& c = b.config();
  if (c.ssm_k_heads > 0 && c.ssm_v_heads > 0 && c.ssm_v_heads % c.ssm_k_heads == 0 && c.ssm_k_dim > 0 &&
      c.ssm_inner_dim > 0 && c.ssm_inner_dim % c.ssm_v_heads == 0 && c.ssm_conv_width >= 2)
    return check_head_state(b);
  b.refuse(fmt::format("ssm keys: {} heads in {} groups, states of {} rows, inner size {}, convolution over {}",
                       c.ssm_v_heads, c.ssm_k_heads, c.ssm_k_dim, c.ssm_inner_dim, c.ssm_conv_width));
  return false;
}

BufferId mamba2(Builder& b, BufferId x) {
  const auto& c = b.config();
  const std::uint32_t heads = c.ssm_v_heads, groups = c.ssm_k_heads, inner = c.ssm_inner_dim,
                      channels = inner + 2 * groups * c.ssm_k_dim;
  // The rows of ssm_in compute the gate z, then what the convolution reads, then dt of each head.
  const auto part = [&](std::string_view name, std::uint64_t first, std::uint64_t n) {
    const std::uint64_t n_rows = std::uint64_t{inner} + channels + heads;
    const Matrix matrix = layer_matrix_rows(b, fmt::format("ssm.{}", name), "ssm_in", first, n_rows, n, b.width(x));
    return project(b, b.at_layer(fmt::format("ssm_{}", name)), x, matrix);
  };
  const BufferId z = part("z", 0, inner), mixed = part("in", inner, channels),
                 dt = part("dt", std::uint64_t{inner} + channels, heads);
  const BufferId conv = b.ssm_conv1d(
      "ssm_conv", mixed, b.layer_weight("ssm.conv_weight", "ssm_conv1d.weight", {channels, c.ssm_conv_width}),
      b.optional_layer_weight("ssm.conv_bias", "ssm_conv1d.bias", {channels}), push::kConvSilu);
  const BufferId y = b.ssm_scan("ssm_scan", conv, dt,
                                {.n_heads = heads,
                                 .n_groups = groups,
                                 .head_dim = inner / heads,
                                 .state_dim = c.ssm_k_dim,
                                 .a = b.layer_weight("ssm.a", "ssm_a", {heads, 1}),
                                 .dt_bias = b.layer_weight("ssm.dt_bias", "ssm_dt.bias", {heads}),
                                 .d = b.layer_weight("ssm.d", "ssm_d", {heads, 1})});
  const BufferId gated = b.ssm_gated_norm(
      b.at_layer("ssm_norm"), y, z, b.layer_weight("ssm.norm_weight", "ssm_norm.weight", {groups, inner / groups}),
      static_cast<float>(c.norm_eps), inner / groups, true);
  return project(b, "ssm_out", "ssm.out", gated, "ssm_out", c.model_dim);
}

}  // namespace zinc_rt::arch
