// Which kernel a matrix product is: by the type of the weights, the type of x, and the rows of the bucket.
#include <algorithm>

#include "ring/cuda/plan.h"

namespace zinc_rt::ring {
namespace {

using cuda::LinearArgs;

constexpr std::uint32_t kItemFromChoice = 2;  // tokens up to which each choice reads its expert's weights by itself

struct Shape {
  const char* function;
  std::uint32_t columns;     // rows of x a workgroup
  std::uint32_t block_rows;  // rows of W a workgroup
  std::uint32_t shared;
};

// linear.cuh: two buffers of 8 warps' v, 8 columns of 20 floats a tile.
constexpr Shape integer_shape(const char* function, std::uint32_t tiles, std::uint32_t column_tiles) {
  return {function, 8 * column_tiles, 16 * tiles, 2 * 8 * tiles * column_tiles * 8 * 20 * 4};
}
constexpr Shape kShapes[] = {integer_shape("linear_8", 1, 1), integer_shape("linear_16", 1, 2),
                             integer_shape("linear_32", 1, 4)};
constexpr Shape kFloatShape{"linear_widened", 8, 8, 0};

// The smallest that takes the columns at once, else the largest.
const Shape& shape_for(bool is_integer, std::uint32_t columns) {
  if (!is_integer) return kFloatShape;
  for (const Shape& shape : kShapes)
    if (columns <= shape.columns) return shape;
  return kShapes[2];
}

std::uint32_t ceil_div(std::uint64_t n, std::uint64_t by) {
  return static_cast<std::uint32_t>((n + by - 1) / by);
}

}  // namespace

const void* plan_quantize(Planner& planner, const OpCall& call, const void* x, DType to, std::uint32_t k) {
  void* rows = planner.scratch(std::uint64_t{call.rows()} * row_bytes(to, k));
  auto args = planner.args(call, {k, static_cast<std::uint32_t>(to)});
  args.buffers[0] = const_cast<void*>(x);
  args.buffers[1] = rows;
  planner.launch("quantize", "quantize", call.rows(), ceil_div(k, 2048), 1, 256, 0, args);
  return rows;
}

void plan_linear(Planner& planner, const OpCall& call, const void* x, DType x_dtype, std::uint32_t k,
                 const std::vector<Matrix>& matrices, const Experts& experts, float* residual) {
  const bool is_integer = x_dtype != DType::kF32;
  LinearArgs args{};
  args.rows_symbol = call.rows_symbol;
  args.k = k;
  args.x = x;
  args.step = planner.header();
  args.x_rows = 1;
  args.residual = residual;
  std::uint32_t columns = call.rows(), n_items = 1;
  Shape shape = shape_for(is_integer, columns);
  std::uint32_t column_tiles = ceil_div(columns, shape.columns);
  if (experts.ids != nullptr) {
    args.choices = experts.choices;
    args.ids = experts.ids;
    args.x_rows = experts.x_rows;
    args.n_experts = experts.n;
    const std::uint32_t n_choices = columns * experts.choices;
    column_tiles = 1;
    if (columns <= kItemFromChoice) {
      shape = shape_for(is_integer, 1);
      n_items = n_choices;
    } else {
      shape = shape_for(is_integer, ceil_div(n_choices, experts.n));
      n_items = std::min(n_choices, experts.n + 1 + n_choices / shape.columns);
      auto* items = static_cast<std::int32_t*>(planner.scratch((1 + 3 * std::uint64_t{n_items}) * 4));
      auto* order = static_cast<std::int32_t*>(planner.scratch(std::uint64_t{n_choices} * 4));
      auto group = planner.args(call, {experts.choices, experts.n, shape.columns});
      group.buffers[0] = const_cast<std::int32_t*>(experts.ids);
      group.buffers[1] = items;
      group.buffers[2] = order;
      planner.launch("moe_gate_topk", "moe_group", 1, 1, 1, 1024, (2 * std::uint64_t{experts.n} + 2) * 4, group);
      args.items = items;
      args.order = order;
    }
  }
  std::vector<bool> done(matrices.size());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (done[i]) continue;
    args.n_parts = 0;
    std::uint32_t blocks = 0;
    for (std::size_t j = i; j < matrices.size(); ++j) {
      const Matrix& m = matrices[j];
      if (done[j] || m.dtype != matrices[i].dtype) continue;
      done[j] = true;
      args.parts[args.n_parts] = {m.w, m.bias, m.y, m.rows, m.pitch, blocks};
      args.expert_pitch[args.n_parts++] = m.expert_pitch;
      blocks += ceil_div(m.rows, shape.block_rows);
    }
    planner.launch("linear." + std::string(to_string(matrices[i].dtype)), shape.function, blocks, column_tiles, n_items,
                   256, shape.shared, args);
  }
}

}  // namespace zinc_rt::ring
