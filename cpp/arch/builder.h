// Builder writes an IR graph the way a paper writes layers: each call adds one node, its output buffer and a barrier.
// Mistakes (a missing tensor, a wrong shape) are remembered, and finish() returns the first one, so family files need
// no checks.
// Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "arch/family.h"

namespace zinc_rt::arch {

using ir::BufferId;

struct Matrix;  // defined in arch/blocks.h

// The name, without its prefix, of the state buffer that holds the slot table (kernels/common/slot_field.h).
inline constexpr std::string_view kSlotTable = "slot_table";
// How the names of the state buffers begin, without the class's prefix, that hold the saved inputs of guessed tokens
// (kernels/common/state_run.h). They have one entry per slot and none per checkpoint.
inline constexpr std::string_view kSavedInputs = "saved_";

class Builder {
 public:
  Builder(std::string name, const ModelConfig& config, const Weights& weights, const GraphOptions& options);

  // The following functions declare buffers. `dims` is a weight's shape, outermost first. The tensor in the file must
  // have the same shape.
  BufferId weight(std::string name, const std::string& tensor, std::initializer_list<std::uint64_t> dims);
  BufferId optional_weight(std::string name, const std::string& tensor, std::initializer_list<std::uint64_t> dims);
  // Declares rows [first, first + n) of a matrix with n_rows rows as a weight buffer. If the tensor is a stack of
  // matrices, these rows of each matrix are declared. `dims` is the shape of the declared part, so its second-last
  // extent is n.
  BufferId weight_rows(std::string name, const std::string& tensor, std::uint64_t first, std::uint64_t n_rows,
                       std::initializer_list<std::uint64_t> dims);
  // Declares a tensor that only the host reads, if the file has it. An example are the divisors of RoPE frequencies. A
  // type other than f32 is an error.
  void optional_f32(std::string name, const std::string& tensor, std::initializer_list<std::uint64_t> dims);
  bool has_tensor(const std::string& tensor) const { return weights_.find(tensor) != nullptr; }
  BufferId constant(std::string name, std::initializer_list<ir::Dim> dims);
  BufferId state(std::string name, DType dtype, std::initializer_list<ir::Dim> dims);
  BufferId request(std::string name, DType dtype, std::initializer_list<ir::Dim> dims);
  BufferId output(std::string name, DType dtype, std::initializer_list<ir::Dim> dims);
  BufferId activation(std::string name, std::initializer_list<ir::Dim> dims, DType dtype = DType::kF32);

  // Begins a layer. From then on, buffer names get the layer's number ("attn.q_weight" -> "attn.q_weight[3]") and
  // tensor names get the layer's prefix ("attn_q.weight" -> "blk.3.attn_q.weight").
  void set_layer(int layer);
  std::string at_layer(std::string_view name) const;
  std::string tensor_at_layer(std::string_view tensor) const;
  bool layer_has(std::string_view tensor) const { return has_tensor(tensor_at_layer(tensor)); }
  // Returns the number of rows of a matrix of the layer; 0 if the layer has no such matrix.
  std::uint64_t layer_rows(std::string_view tensor) const;
  BufferId layer_weight(std::string_view name, std::string_view tensor, std::initializer_list<std::uint64_t> dims) {
    return weight(at_layer(name), tensor_at_layer(tensor), dims);
  }
  BufferId optional_layer_weight(std::string_view name, std::string_view tensor,
                                 std::initializer_list<std::uint64_t> dims) {
    return optional_weight(at_layer(name), tensor_at_layer(tensor), dims);
  }
  BufferId layer_weight_rows(std::string_view name, std::string_view tensor, std::uint64_t first, std::uint64_t n_rows,
                             std::initializer_list<std::uint64_t> dims) {
    return weight_rows(at_layer(name), tensor_at_layer(tensor), first, n_rows, dims);
  }

  // The following functions each add a node and return its output buffer. `name` is the name of the output buffer,
  // without the prefix of its class.
  BufferId embed(std::string name, BufferId ids, BufferId table, float scale);
  BufferId rms_norm(std::string name, BufferId x, BufferId w, float eps, std::uint32_t group);
  void layer_norm_into(BufferId x, BufferId w, BufferId b, float eps);  // computes x = LAYER_NORM(x) in place
  // Makes row_norm(), and so the final norm, a LAYER_NORM without a bias instead of an RMS_NORM.
  void use_layer_norms() { has_layer_norms_ = true; }
  // Adds the family's norm over whole rows.
  BufferId row_norm(std::string name, BufferId x, BufferId w, float eps);
  BufferId rope(std::string name, BufferId x, BufferId pos, BufferId table, std::uint32_t head_dim, std::uint32_t n_rot,
                bool neox);
  // Holds the buffers of a layer's paged KV cache, state.kv_k[layer] and state.kv_v[layer]. Per token the cache
  // contains n_heads heads with `k_dim` values of K and `v_dim` values of V each.
  struct KvCache {
    BufferId k = ir::kNoBuffer, v = ir::kNoBuffer;
  };
  KvCache kv_cache(std::uint32_t n_heads, std::uint32_t k_dim, std::uint32_t v_dim);
  void kv_write(BufferId k, BufferId v, BufferId kv_k, BufferId kv_v, std::uint32_t head_dim);
  struct Attention {
    std::uint32_t n_heads, n_kv_heads, head_dim, v_head_dim;
    float scale;
    std::uint32_t window = 0;
    float softcap = 0;
    BufferId sinks = ir::kNoBuffer;  // [n_heads], if the heads have sinks
  };
  BufferId flash_attn(std::string name, BufferId q, BufferId kv_k, BufferId kv_v, const Attention& attention);
  void add_into(BufferId x, BufferId y);  // computes x = x + y in place
  BufferId glu(std::string name, BufferId gate, BufferId up, std::uint32_t act);
  BufferId gelu(std::string name, BufferId x);
  BufferId relu2(std::string name, BufferId x);
  BufferId mul(std::string name, BufferId x, BufferId y);
  BufferId sigmoid_mul(std::string name, BufferId x, BufferId gate);
  BufferId slice(std::string name, BufferId x, std::uint32_t group, std::uint32_t first, std::uint32_t width);
  // Puts the groups of a and of b side by side: `groups` times a group of a, then one of b.
  BufferId concat(std::string name, BufferId a, BufferId b, std::uint32_t groups);
  // Multiplies each head of a row by its own matrix of w, [heads, n_out, n_in].
  BufferId linear_heads(std::string name, BufferId x, BufferId w);
  BufferId scale(std::string name, BufferId x, float factor);
  void scale_into(BufferId x, BufferId w);  // computes x = x * w[0] in place
  struct Routing {
    BufferId ids = ir::kNoBuffer, weights = ir::kNoBuffer;
  };
  struct Router {
    BufferId weight = ir::kNoBuffer, bias = ir::kNoBuffer, choice_bias = ir::kNoBuffer;
    std::uint32_t n_used = 0;
    bool renormalize = true;
    float scale = 1;
    std::uint32_t gating = 0;  // push::Gating
    std::uint32_t groups = 1, groups_used = 1;
  };
  Routing moe_gate_topk(BufferId x, const Router& router);
  // Adds a product with the matrices of the experts in `ids`. `rows` is the number of rows of x per token: 1 if all
  // experts read the same row, else the number of chosen experts.
  BufferId moe_linear(std::string name, BufferId x, BufferId w, BufferId ids, std::uint32_t rows);
  void moe_add_bias(BufferId y, BufferId ids, BufferId bias);  // adds each row's expert's bias in place
  BufferId moe_glu(std::string name, BufferId gate, BufferId up, std::uint32_t act);
  // Computes y = y * expert_scale[id] in place, for each chosen expert's row of y.
  void moe_scale_into(BufferId y, BufferId ids, BufferId expert_scale);
  BufferId moe_sum(std::string name, BufferId y, const Routing& routing, BufferId expert_scale);
  // Adds hidden += sigmoid(gate_inp . x) * ffn(x), where ffn is the expert that every token uses. Without gate_inp the
  // factor is 1.
  void shared_expert(BufferId x, BufferId gate_w, BufferId up_w, BufferId down_w, BufferId gate_inp, BufferId hidden,
                     std::uint32_t act);
  // The names of the states of ssm_conv1d(), ssm_delta_net() and ssm_scan(), and of their saved inputs, are made from
  // `name`. act is one of push::ConvActivation.
  BufferId ssm_conv1d(std::string_view name, BufferId x, BufferId conv_w, BufferId bias, std::uint32_t act);
  struct DeltaNet {
    std::uint32_t n_k_heads, n_v_heads, k_dim, v_dim;
    bool tiled;
    float eps;
  };
  BufferId ssm_delta_net(std::string_view name, BufferId x, BufferId beta, BufferId alpha, BufferId a, BufferId dt,
                         const DeltaNet& shape);
  struct Scan {
    std::uint32_t n_heads, n_groups, head_dim, state_dim;
    BufferId a, dt_bias, d;
  };
  BufferId ssm_scan(std::string_view name, BufferId x, BufferId dt, const Scan& scan);
  // w is [1, group], or has a row for each group of x.
  BufferId ssm_gated_norm(std::string name, BufferId x, BufferId z, BufferId w, float eps, std::uint32_t group,
                          bool gate_first = false);
  BufferId softcap(std::string name, BufferId x, float cap);
  // Adds everything between the hidden state and the picked tokens: gathering the output rows, the norm, the output
  // matrix, sampling and the output ring. The logits are in the buffer out.logits. If options().gives_features and
  // nothing gave features before, the norm of all tokens is in out.features.
  void head(BufferId hidden, BufferId norm_w, BufferId head_w, float logit_scale, float softcap);
  // Copies x, [tokens, width], to out.features. A draft block calls it before head() if its features are not what the
  // final norm gives.
  void give_features(BufferId x);
  // Adds everything between the hidden state and out.embeddings: the norm if norm_w is given, pooling by
  // options().pooling, and gathering the output rows. The output row of a text is the row of its first token with
  // pooling cls, else the row of its last token.
  void embedding_head(BufferId hidden, BufferId norm_w);
  // Adds GATHER_ROWS, which copies the hidden state of the step's output rows, and returns it: [outputs, width of
  // hidden]. Only these rows need the nodes that follow.
  BufferId gather_output_rows(BufferId hidden);

  std::uint32_t width(BufferId buffer) const;  // extent of the last dimension, whose values are contiguous
  ir::Dim rows(BufferId buffer) const;         // returns the extent of the outermost dimension
  // The following functions return buffers of the step descriptor that every family reads.
  BufferId token_ids() const { return token_ids_; }
  BufferId positions() const { return positions_; }
  // Returns the buffer that contains, for each token, its row in a RoPE table with variants (RopeTable).
  BufferId rope_positions() { return request("rope_positions", DType::kI32, {ir::kTokens}); }

  // Tells finish() that this graph does not read a tensor that the family knows, so that it does not refuse the file.
  void leave_out(const std::string& tensor) { used_tensors_.insert(tensor); }
  // Records that the family cannot run this model; finish() returns the first such error.
  void refuse(std::string message);

  const ModelConfig& config() const { return config_; }
  const GraphOptions& options() const { return options_; }

  // Returns the graph, or the first mistake. A tensor of the file that no node uses is a mistake too, unless its name
  // begins with a text in `ignored`.
  Result<ir::Graph> finish(const std::vector<std::string>& ignored = {});

 private:
  BufferId declare(std::string name, ir::BufferClass buffer_class, DType dtype, std::initializer_list<ir::Dim> dims,
                   std::string tensor = {});
  BufferId add_weight(std::string name, const std::string& tensor, std::uint64_t first, std::uint64_t n_rows,
                      std::initializer_list<std::uint64_t> dims);
  ir::Node node(ir::Op op, std::initializer_list<BufferId> inputs, std::initializer_list<BufferId> outputs);
  void push(ir::Node node);
  void row_norm_to(BufferId y, BufferId x, BufferId w, float eps);
  // Adds y = LINEAR(x). Families must call project() instead.
  void linear(BufferId y, BufferId x, BufferId w, BufferId bias);
  friend void project_into(Builder& b, BufferId y, BufferId x, const Matrix& matrix);
  BufferId slot_table();
  BufferId state_runs();
  // Adds the input of a layer to the features, if options().feature_layers has the layer.
  void keep_input_of(std::uint32_t layer);
  void concat_into(BufferId y, BufferId a, BufferId b, std::uint32_t groups);
  void scale_to(BufferId y, BufferId x, float factor);
  BufferId saved_inputs(std::string_view name, std::initializer_list<ir::Dim> dims);
  std::uint32_t parts(std::uint32_t width, std::uint32_t part);  // returns width / part; records a mistake if part is 0

  const ModelConfig& config_;
  const Weights& weights_;
  GraphOptions options_;
  ir::Graph graph_;
  int layer_ = -1;
  bool has_layer_norms_ = false;
  Status status_;
  std::unordered_set<std::string> used_tensors_;
  std::size_t n_features_ = 0;  // of options().feature_layers, so many are in features_
  BufferId features_ = ir::kNoBuffer;
  BufferId token_ids_, positions_, slots_, page_table_;
};

}  // namespace zinc_rt::arch
