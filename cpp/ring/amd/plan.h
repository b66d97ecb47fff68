// Turns packets into launches on the AMD tiers: chooses the kernels of an op, and their arguments.
// Thread rule: plain values; a planner belongs to one thread.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/rdna/op_args.h"
#include "kernels/rdna/product_args.h"
#include "ring/amd/ops.h"
#include "ring/gpu/call.h"
#include "ring/gpu/products.h"

namespace zinc_rt::ring {

using gpu::ceil_div;
namespace op_symbol = gpu::op_symbol;

struct AmdLaunch {
  std::string function;
  std::uint32_t threads = 0;  // threads per workgroup
  std::uint32_t groups[3] = {1, 1, 1};
  bool waits = false;  // whether the launch waits for all earlier launches
  rdna::OpArgs args;   // arguments of the kernel; a kernel may read them as another struct of the same size
};

// AmdCall is a packet that is being planned as launches. Its operands are device addresses, and its symbolic dimensions
// have the values of the step.
struct AmdCall : gpu::Call<std::uint64_t> {
  const AmdKernel* kernel;
};

class AmdPlanner {
 public:
  // `scratch` is the address of the scratch memory.
  AmdPlanner(std::vector<AmdLaunch>& launches, std::uint64_t scratch) : launches_(launches), scratch_at_(scratch) {}

  // Takes scratch memory for the packets that are being planned together. Returns its address.
  std::uint64_t scratch(std::uint64_t bytes) { return scratch_at_ + scratch_.take(bytes); }
  bool has_scratch() const { return scratch_.used() > 0; }  // whether these packets have taken scratch memory
  // Returns the most scratch memory that any packets planned together take.
  std::uint64_t scratch_bytes() const { return scratch_.most(); }
  // Called when the packets so far are planned. Their scratch memory is free for later packets.
  void end_packets() {
    scratch_.free_behind(0);
    waits_ = false;
  }
  // Makes the next launch wait for all earlier launches.
  void barrier() { waits_ = true; }

  // Returns the arguments of an op's own kernel.
  rdna::OpArgs args(const AmdCall& call) const;
  template <class Args>
  void launch(std::string function, std::uint32_t threads, std::uint32_t x, std::uint32_t y, std::uint32_t z,
              const Args& args) {
    static_assert(sizeof(args) == sizeof(rdna::OpArgs));
    AmdLaunch& launch = launches_.emplace_back();
    launch.function = std::move(function);
    launch.threads = threads;
    launch.groups[0] = x, launch.groups[1] = y, launch.groups[2] = z;
    launch.waits = std::exchange(waits_, false);
    std::memcpy(static_cast<void*>(&launch.args), &args, sizeof(args));
  }

 private:
  std::vector<AmdLaunch>& launches_;
  std::uint64_t scratch_at_;
  gpu::Scratch scratch_;
  bool waits_ = false;
};

// Plans the launches of a submission, with scratch memory at address `scratch`. Returns how many bytes of scratch
// memory the launches take. `kernels` are the loaded kernels, by id - 1. `address` returns a binding's address; if no
// memory exists yet, it returns any value but 0 for an operand that is present.
using AddressOf = std::function<std::uint64_t(const Binding&)>;
std::uint64_t plan_submission(const Submission& submission, std::span<const AmdKernel> kernels,
                              const AddressOf& address, std::uint64_t scratch, std::vector<AmdLaunch>& launches);

// The functions of plan_products.cpp plan matrix products.
using AmdMatrix = gpu::Matrix<std::uint64_t>;
using AmdExperts = gpu::Experts<std::uint64_t>;
using AmdProducts = gpu::Products<std::uint64_t>;
// Plans products of n rows of x, or of the experts of n tokens. `residual` is the address of rows that are added to y,
// or 0.
void plan_products(AmdPlanner& planner, std::uint32_t n, const AmdProducts& products, std::uint64_t residual = 0);
void plan_linear_op(AmdPlanner& planner, const AmdCall& call);  // plans LINEAR and LM_HEAD
void plan_matmul_q4k(AmdPlanner& planner, const AmdCall& call);
std::size_t plan_linear_sum(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);

// The functions of plan_norms.cpp plan norms, and rows that are quantized.
void plan_norm(AmdPlanner& planner, const AmdCall& call);  // plans RMS_NORM, RESIDUAL_RMS_NORM, SSM_GATED_NORM
std::size_t plan_norm_quantize(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);
void plan_qkv(AmdPlanner& planner, const AmdCall& call);      // plans RMS_NORM_FUSED_QKV
void plan_gate_up(AmdPlanner& planner, const AmdCall& call);  // plans RMS_NORM_FUSED_MLP_GATE_UP
void plan_layer_norm(AmdPlanner& planner, const AmdCall& call);
void plan_quantize(AmdPlanner& planner, const AmdCall& call);
// Plans the conversion of n rows of floats to rows of an activation type.
using AmdQuantized = gpu::Quantized<std::uint64_t>;
void plan_quantized_rows(AmdPlanner& planner, std::uint32_t n, const AmdQuantized& rows);
// Plans GLU with its rows quantized to rows.y; rows.x is not read. If glu.y is 0, only the quantized rows are written.
void plan_glu_quantized(AmdPlanner& planner, std::uint32_t n, const gpu::Glu<std::uint64_t>& glu,
                        const AmdQuantized& rows);
std::size_t plan_glu_quantize(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);

// The functions of plan_experts.cpp plan the ops of experts.
void plan_gate_topk(AmdPlanner& planner, const AmdCall& call);
void plan_moe_gate_up(AmdPlanner& planner, const AmdCall& call);
void plan_moe_linear(AmdPlanner& planner, const AmdCall& call);
void plan_moe_sum(AmdPlanner& planner, const AmdCall& call);
std::size_t plan_moe_sum_add(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);
void plan_moe_down_acc(AmdPlanner& planner, const AmdCall& call);
void plan_shared_expert(AmdPlanner& planner, const AmdCall& call);

// The functions of plan_attention.cpp plan attention and the ops before it.
void plan_flash_attn(AmdPlanner& planner, const AmdCall& call);
std::size_t plan_attention_quantize(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);
void plan_rope_kv_write(AmdPlanner& planner, const AmdCall& call);

// The AMD kernels of the following ops have their symbols in another order than ring/gpu/symbols.h lists.
namespace amd_symbol {
ZRT_NAMES(Embed, v, d, s, fields)
ZRT_NAMES(FlashAttn, m, dtype_kv_k, pitch_kv_k, pitch_kv_v, attr_v_head_dim, attr_head_dim)
ZRT_NAMES(SsmDeltaNet, n, k, attr_k_dim)
ZRT_NAMES(RequestState, s, fields, n)
}  // namespace amd_symbol

}  // namespace zinc_rt::ring
