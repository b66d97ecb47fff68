// From packets to launches: which kernels an op is on these tiers, with their arguments.
// Thread rule: plain values; a planner is one thread's.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/name_list.h"
#include "kernels/rdna/op_args.h"
#include "kernels/rdna/product_args.h"
#include "ring/amd/ops.h"
#include "ring/packet.h"

namespace zinc_rt::ring {

struct AmdLaunch {
  std::string function;
  std::uint32_t threads = 0;  // of a workgroup
  std::uint32_t groups[3] = {1, 1, 1};
  bool waits = false;  // for the launches before it
  rdna::OpArgs args;   // or others, which take as much
};

// A packet on its way to launches.
struct AmdCall {
  const AmdKernel* kernel;
  rdna::OpArgs args;  // of its own kernel
  std::uint32_t groups[3];
  StepDims dims;

  ir::Op op() const { return kernel->op->op; }
  std::uint32_t rows() const { return groups[0]; }
  std::uint64_t buffer(unsigned operand) const { return args.buffers[operand]; }
  std::uint32_t dim(std::size_t symbol) const {
    const std::uint32_t n = kernel->symbols[symbol];
    if (n == rdna::kSymbolicTokens) return dims.n_tokens;
    return n == rdna::kSymbolicOutputs ? dims.n_outputs : n;
  }
  DType dtype(std::size_t symbol) const { return static_cast<DType>(kernel->symbols[symbol]); }
  // Its operands by name. REQUIRES: Names are those of the op.
  template <class Names>
  typename Names::template Of<std::uint64_t> operands() const {
    typename Names::template Of<std::uint64_t> named;
    std::memcpy(&named, args.buffers, sizeof(named));
    return named;
  }
  template <class T>
  T constants() const {
    T value;
    std::memcpy(&value, args.push, sizeof(value));
    return value;
  }
};

constexpr std::uint32_t ceil_div(std::uint64_t n, std::uint64_t by) {
  return static_cast<std::uint32_t>((n + by - 1) / by);
}

class AmdPlanner {
 public:
  // scratch: where that memory begins.
  AmdPlanner(std::vector<AmdLaunch>& launches, std::uint64_t scratch) : launches_(launches), scratch_(scratch) {}

  // Plans all or the first of the calls, which match `joins` from the first on. Returns their number.
  std::size_t plan(std::span<const AmdCall> calls, std::span<const Joined> joins);

  // Memory of the packets that are being planned together, aligned to 256 bytes.
  std::uint64_t scratch(std::uint64_t bytes);
  std::uint64_t used() const { return used_; }            // of it, by the packets planned last
  std::uint64_t most_used() const { return most_used_; }  // by any packets
  // What is launched next waits for what was launched before it.
  void barrier() { waits_ = true; }
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
  std::uint64_t scratch_, used_ = 0, most_used_ = 0;
  bool waits_ = false;
};

// The launches of a submission of packets whose kernels are loaded (by id - 1), with memory at `scratch`. Returns how much
// of it they take. address: of a binding; where there is no memory yet, not 0 for one that is there.
using AddressOf = std::function<std::uint64_t(const Binding&)>;
std::uint64_t plan_submission(const Submission& submission, std::span<const AmdKernel> kernels,
                              const AddressOf& address, std::uint64_t scratch, std::vector<AmdLaunch>& launches);
std::span<const std::string_view> amd_join_patterns();

// Matrix products (plan_products.cpp).
struct AmdMatrix {
  std::uint64_t w;
  DType dtype;
  std::uint32_t rows;
  std::uint64_t bias, y;
  std::uint64_t expert_bytes = 0;  // from an expert's matrix to the next
};
struct AmdExperts {
  std::uint64_t ids = 0;  // [rows, choices]; 0: no experts
  std::uint32_t choices = 0, n = 0, x_rows = 1;
};
// Rows of x: n of them, or n tokens' of experts.
struct AmdRows {
  std::uint64_t at;
  DType type;
  std::uint32_t n, k;
};
// y = x W^T of matrices of one k, side by side. residual: 0, or rows to which y is added besides.
void plan_products(AmdPlanner& planner, const AmdRows& x, const std::vector<AmdMatrix>& matrices,
                   const AmdExperts& experts = {}, std::uint64_t residual = 0);
// LINEAR and LM_HEAD.
void plan_linear_op(AmdPlanner& planner, const AmdCall& call, std::uint64_t residual = 0);
void plan_matmul_q4k(AmdPlanner& planner, const AmdCall& call);

// Norms (plan_norms.cpp).
void plan_norm(AmdPlanner& planner, const AmdCall& call);  // RMS_NORM, RESIDUAL_RMS_NORM, SSM_GATED_NORM
std::size_t plan_norm_quantize(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);
void plan_qkv(AmdPlanner& planner, const AmdCall& call);      // RMS_NORM_FUSED_QKV
void plan_gate_up(AmdPlanner& planner, const AmdCall& call);  // RMS_NORM_FUSED_MLP_GATE_UP
void plan_layer_norm(AmdPlanner& planner, const AmdCall& call);
void plan_quantize(AmdPlanner& planner, const AmdCall& call);
void plan_quantized_rows(AmdPlanner& planner, const AmdRows& to, std::uint64_t x);
// y = act(gate) * up, and quantized. y 0: only that.
struct AmdGlu {
  std::uint64_t gate, up, y;
  std::uint32_t act;
};
void plan_glu_quantize(AmdPlanner& planner, const AmdRows& to, const AmdGlu& glu);

// Experts (plan_experts.cpp).
void plan_gate_topk(AmdPlanner& planner, const AmdCall& call);
void plan_moe_gate_up(AmdPlanner& planner, const AmdCall& call);
void plan_moe_linear(AmdPlanner& planner, const AmdCall& call);
void plan_moe_sum(AmdPlanner& planner, const AmdCall& call);
std::size_t plan_moe_sum_add(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);
void plan_moe_down_acc(AmdPlanner& planner, const AmdCall& call);
void plan_shared_expert(AmdPlanner& planner, const AmdCall& call);

// Attention (plan_attention.cpp).
void plan_flash_attn(AmdPlanner& planner, const AmdCall& call);
std::size_t plan_attention_quantize(AmdPlanner& planner, std::span<const AmdCall> calls, std::size_t n);
void plan_rope_kv_write(AmdPlanner& planner, const AmdCall& call);

// The symbols of the ops that a plan reads, in the order of their rows.
namespace amd_symbols {
inline constexpr NameList kProduct{"dim:k", "dim:m", "dtype:w", "dtype:x"};
inline constexpr NameList kLmHead{"dim:d", "dim:v", "dtype:w", "dtype:x"};
static_assert(kProduct["dim:k"] == kLmHead["dim:d"] && kProduct["dim:m"] == kLmHead["dim:v"]);
inline constexpr NameList kMatmulQ4K{"dim:k", "dim:m"};
inline constexpr NameList kNorm{"dim:d"};
inline constexpr NameList kQkv{"dim:d", "dim:nq", "dim:nk", "dim:nv", "dtype:q_w", "dtype:k_w", "dtype:v_w"};
inline constexpr NameList kGateUp{"dim:d", "dim:f", "dtype:gate_w", "dtype:up_w"};
inline constexpr NameList kQuantize{"dim:k", "dtype:y"};
inline constexpr NameList kRopeKvWrite{"dim:nq", "dim:nk",     "dim:nv",     "dim:m",
                                       "dim:p",  "dtype:kv_k", "pitch:kv_k", "pitch:kv_v"};
inline constexpr NameList kFlashAttn{"dim:m",      "dtype:kv_k",      "pitch:kv_k",
                                     "pitch:kv_v", "attr:v_head_dim", "attr:head_dim"};
inline constexpr NameList kGateTopk{"dim:d", "dim:e", "dtype:gate_w", "dtype:x"};
inline constexpr NameList kMoeGateUp{"dim:d",      "dim:e",   "dim:f",        "dim:k",     "dtype:gate_w",
                                     "dtype:up_w", "dtype:x", "pitch:gate_w", "pitch:up_w"};
inline constexpr NameList kMoeLinear{"dim:d", "dim:e", "dim:f", "dim:k", "dtype:w", "dtype:x", "pitch:w"};
inline constexpr NameList kMoeSum{"dim:d", "dim:k", "dim:e"};
inline constexpr NameList kMoeDownAcc{"dim:f", "dim:e", "dim:d", "dim:k", "dtype:down_w", "dtype:x", "pitch:down_w"};
inline constexpr NameList kSharedExpert{"dim:d", "dim:f", "dtype:gate_w", "dtype:up_w", "dtype:down_w"};
inline constexpr NameList kSample{"dim:v"};
}  // namespace amd_symbols

}  // namespace zinc_rt::ring
