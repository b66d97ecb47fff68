// Defines the parts that transformer families share, for the files cpp/arch/<family>.cpp. Each function adds a few
// nodes that use the tensors of the current layer, under GGUF's tensor names. A family's file composes these parts and
// adds what is special to the family.
// Thread rule: as Builder.
#pragma once

#include "arch/builder.h"
#include "arch/rope.h"

namespace zinc_rt::arch {

// Returns the prefixes of the tensors of blocks for multi-token prediction, which follow the layers and are not run,
// for Builder::finish().
std::vector<std::string> mtp_blocks(const ModelConfig& config);

// Adds the lookup of the token embeddings in model.embed_table. Returns the residual stream, act.hidden.
BufferId embed_tokens(Builder& b, float scale);
// Adds the final norm, the output matrix, the scale of the logits, and sampling. The output matrix is the embedding
// table if the file has no output matrix. norm_tensor is the name of the final norm's weight.
void output_head(Builder& b, BufferId hidden, float logit_scale = 1.0f,
                 const std::string& norm_tensor = "output_norm.weight");

// Adds the family's norm (Builder::row_norm) over whole rows of x, with the layer's tensor `tensor`.weight.
BufferId row_norm(Builder& b, std::string_view name, BufferId x, std::string_view tensor);
// The same with an epsilon that is not the config's.
BufferId row_norm(Builder& b, std::string_view name, BufferId x, std::string_view tensor, float eps);
// Adds RMS_NORM over each head, with the layer's tensor `tensor`.weight. If the layer has no such tensor, adds nothing
// and returns x.
BufferId head_norm(Builder& b, std::string_view name, BufferId x, std::string_view tensor, std::uint32_t head_dim);

// Holds a weight matrix, its bias and its scale, as buffers of the graph. project() multiplies activations by the
// matrix.
struct Matrix {
  BufferId weight = ir::kNoBuffer, bias = ir::kNoBuffer;  // bias is kNoBuffer if the file has none
  BufferId scale = ir::kNoBuffer;                         // one number that multiplies the product, or kNoBuffer
};
// Returns `tensor`.scale of the layer, n numbers that multiply products with `tensor`.weight, or kNoBuffer. Files with
// NVFP4 weights have it. Their `tensor`.input_scale is meant for another form of activations; it is known and not used.
BufferId layer_scale(Builder& b, std::string_view name, std::string_view tensor, std::uint64_t n);
// Returns `tensor`.weight of the layer, [n_out, n_in], and `tensor`.bias and `tensor`.scale if the layer has them. The
// buffers are called `name`_weight, `name`_bias and `name`_scale.
Matrix layer_matrix(Builder& b, std::string_view name, std::string_view tensor, std::uint64_t n_out,
                    std::uint64_t n_in);
// Returns rows [first, first + n_out) of `tensor`.weight, without a bias. The tensor has n_rows rows. Families call it
// if one tensor contains several matrices, such as q, k and v.
Matrix layer_matrix_rows(Builder& b, std::string_view name, std::string_view tensor, std::uint64_t first,
                         std::uint64_t n_rows, std::uint64_t n_out, std::uint64_t n_in);
// Adds y = LINEAR(x) with this matrix. Every LINEAR of every family is added here, so a change of all of them (such as
// an adapter that adds B(A(x)) for the matrix's tensor) belongs here. The output matrix and the matrices of experts use
// other ops (Builder::head, moe_linear, shared_expert).
void project_into(Builder& b, BufferId y, BufferId x, const Matrix& matrix);
// Adds y = LINEAR(x) with this matrix, where y is a new activation called `name` of shape [rows of x, rows of the
// matrix]. Returns y.
BufferId project(Builder& b, std::string name, BufferId x, const Matrix& matrix);
// Adds y = LINEAR(x) with the matrix layer_matrix(weight_name, tensor) and returns y. The activation is called `name`
// and the layer's number.
BufferId project(Builder& b, std::string_view name, std::string_view weight_name, BufferId x, std::string_view tensor,
                 std::uint64_t n_out);

struct AttentionShape {
  std::uint32_t n_heads, n_kv_heads, head_dim, v_head_dim;
  float scale;
  std::uint32_t window = 0;
  float softcap = 0;
  BufferId sinks = ir::kNoBuffer;  // [n_heads], if the heads have sinks
};
// Returns the layer's shape from the config. The factor of attention scores is 1 / sqrt(head_dim) unless the config
// sets another.
AttentionShape attention_shape(const ModelConfig& config, std::uint32_t layer);

struct Rope {
  BufferId table, positions;  // if `table` is kNoBuffer, positions are not encoded
  std::uint32_t n_rot;
  bool neox;
};
// Returns the Rope of a family that has only one table, const.rope.
Rope config_rope(Builder& b, bool neox);
// Returns whether queries are multiplied by 1 + temperature_scale * ln(1 + floor(position / original context)). Within
// the original context that is 1.
bool queries_have_temperature(Builder& b);
BufferId rotate(Builder& b, std::string_view name, BufferId x, const Rope& rope, std::uint32_t head_dim);

struct Qkv {
  BufferId q, k, v;
};
// Computes q, k and v with the layer's tensors attn_q, attn_k and attn_v, or with the rows of a fused attn_qkv.
Qkv project_qkv(Builder& b, BufferId x, const AttentionShape& shape);
// Adds the family's norm over the whole rows of q and of k, before they are cut into heads.
void norm_rows(Builder& b, Qkv& qkv);
// Adds RoPE, the writes to the KV cache, and attention. Returns [tokens, n_heads * v_head_dim].
BufferId attend(Builder& b, const Qkv& qkv, const AttentionShape& shape, const Rope& rope);
// The same without RoPE, for a family that rotates q and k itself.
BufferId attend(Builder& b, const Qkv& qkv, const AttentionShape& shape);
// Adds complete self-attention, with per-head norms of q and k if the layer has them. Returns [tokens, model_dim].
BufferId self_attention(Builder& b, BufferId x, const AttentionShape& shape, const Rope& rope);

// Records in `b` that the family cannot run the model, if the state of a head of its recurrent layers has too many
// values. Returns whether it does not. REQUIRES: the config has ssm_v_heads.
bool check_head_state(Builder& b);

// Returns down(relu2(up(x))) with the layer's feed-forward tensors, in families without a gate.
BufferId relu2_ffn(Builder& b, BufferId x, std::uint64_t ffn_dim);
// Returns down(act(gate(x)) * up(x)) with the layer's feed-forward tensors. gate and up may be the two halves of one
// tensor ffn_up.
BufferId dense_ffn(Builder& b, BufferId x, std::uint64_t ffn_dim, std::uint32_t act);
// What a family's router does where the file has no key that says it.
struct RouterDefaults {
  std::uint32_t gating = 0;  // push::Gating
  bool renormalize = true;
};
// Adds a mixture of experts and returns the weighted sum of the chosen experts' outputs. The router (ffn_gate_inp)
// reads `router_input`, the experts read x. The experts' gate and up matrices may be the two halves of one tensor
// ffn_gate_up_exps. If the layer has scales of these tensors (layer_scale()), each product is multiplied by its
// expert's value. The router's and the experts' matrices may have biases, and exp_probs_b.bias is added to likelihoods
// when experts are chosen. If the layer has no gate matrices, an expert computes down(relu2(up(x))) and act is not
// read. x may be narrower than `router_input`.
BufferId experts(Builder& b, BufferId router_input, BufferId x, std::uint32_t act, const RouterDefaults& router = {});
// Adds to `hidden` the output of the expert that every token uses, if the layer has one (the tensors ffn_*_shexp). With
// ffn_gate_inp_shexp the output is multiplied by the sigmoid of a gate. Without ffn_gate_shexp it computes
// down(relu2(up(x))) and act is not read.
void add_shared_expert(Builder& b, BufferId x, BufferId hidden, std::uint32_t act);
// As dense_ffn or experts and add_shared_expert, whichever the layer has. Adds the outputs to `hidden`.
void add_feed_forward(Builder& b, BufferId x, BufferId hidden, std::uint32_t layer, const RouterDefaults& router = {});

}  // namespace zinc_rt::arch
