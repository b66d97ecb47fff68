// The parts that transformer families share. Each is a few nodes over the tensors of the current layer, by GGUF's
// tensor names. A family composes these parts and writes in its own file what only it does.
// Thread rule: as Builder.
#pragma once

#include "arch/builder.h"
#include "arch/rope.h"

namespace zinc_rt::arch {

// Makes the residual stream act.hidden from the token ids. The table is model.embed_table.
BufferId embed_tokens(Builder& b, float scale);
// The final norm, the head (the embedding table if the file has no output matrix), the scale of logits, and sampling.
void output_head(Builder& b, BufferId hidden, float logit_scale = 1.0f);

// RMS_NORM over whole rows with the layer's tensor `tensor`.weight.
BufferId row_norm(Builder& b, std::string_view name, BufferId x, std::string_view tensor);
// The same over each head, if the layer has the tensor; else returns x.
BufferId head_norm(Builder& b, std::string_view name, BufferId x, std::string_view tensor, std::uint32_t head_dim);

// A matrix of the model and its bias, as a product applies them. Their buffers say which tensor, and which rows of it.
struct Matrix {
  BufferId weight = ir::kNoBuffer, bias = ir::kNoBuffer;  // no bias: the file has none
};
// `tensor`.weight of the layer, [n_out, n_in], and `tensor`.bias where the layer has it. The buffers get the names
// `name`_weight and `name`_bias.
Matrix layer_matrix(Builder& b, std::string_view name, std::string_view tensor, std::uint64_t n_out,
                    std::uint64_t n_in);
// Rows [first, first + n_out) of `tensor`.weight, which has n_rows rows, because several products share it. No bias.
Matrix layer_matrix_rows(Builder& b, std::string_view name, std::string_view tensor, std::uint64_t first,
                         std::uint64_t n_rows, std::uint64_t n_out, std::uint64_t n_in);
// y = LINEAR(x) by the matrix: the one place where a graph gets a LINEAR, whatever its family. What changes every such
// product, as an adapter that adds B(A(x)) for the matrix's tensor, is added here. The output matrix and those of experts
// are of other ops (Builder::head, moe_linear, shared_expert).
void project_into(Builder& b, BufferId y, BufferId x, const Matrix& matrix);
// The same into a new activation `name`, [rows of x, rows of the matrix].
BufferId project(Builder& b, std::string name, BufferId x, const Matrix& matrix);
// The same by layer_matrix(weight_name, tensor), with the layer's number behind `name`.
BufferId project(Builder& b, std::string_view name, std::string_view weight_name, BufferId x, std::string_view tensor,
                 std::uint64_t n_out);

struct AttentionShape {
  std::uint32_t n_heads, n_kv_heads, head_dim, v_head_dim;
  float scale;
  std::uint32_t window = 0;
  float softcap = 0;
};
// The layer's shape from the config; the scale is 1 / sqrt(head_dim) unless the config gives one.
AttentionShape attention_shape(const ModelConfig& config, std::uint32_t layer);

struct Rope {
  BufferId table, positions;  // without a table positions are not encoded
  std::uint32_t n_rot;
  bool neox;
};
// For a family with one table, const.rope.
Rope config_rope(Builder& b, bool neox);
BufferId rotate(Builder& b, std::string_view name, BufferId x, const Rope& rope, std::uint32_t head_dim);

struct Qkv {
  BufferId q, k, v;
};
// q, k and v by attn_q, attn_k and attn_v, or by the rows of a fused attn_qkv.
Qkv project_qkv(Builder& b, BufferId x, const AttentionShape& shape);
// RoPE, cache and attention: [tokens, n_heads * v_head_dim].
BufferId attend(Builder& b, const Qkv& qkv, const AttentionShape& shape, const Rope& rope);
// Complete self-attention, with per-head norms of q and k if the layer has them: [tokens, model_dim].
BufferId self_attention(Builder& b, BufferId x, const AttentionShape& shape, const Rope& rope);

// down(act(gate(x)) * up(x)); gate and up may be the halves of one ffn_up.
BufferId dense_ffn(Builder& b, BufferId x, std::uint64_t ffn_dim, std::uint32_t act);
// The weighted sum of the chosen experts. `router_input` feeds ffn_gate_inp, x feeds the experts. Their gate and up may
// be the halves of one ffn_gate_up_exps. ffn_down_exps.scale, if present, multiplies each expert's output.
BufferId experts(Builder& b, BufferId router_input, BufferId x, std::uint32_t act);

}  // namespace zinc_rt::arch
