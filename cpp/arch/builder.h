// Writes graphs the way a paper writes layers: each call adds one node, its output buffer and the barrier after it.
// Mistakes (a missing tensor, a wrong shape) are remembered; finish() returns the first, so that family files stay free
// of checks. Thread rule: one thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "arch/family.h"

namespace zinc_rt::arch {

using ir::BufferId;

class Builder {
 public:
  Builder(std::string name, const ModelConfig& config, const Weights& weights, const GraphOptions& options);

  // Buffers. A weight's shape is `dims`, outermost first; the file must agree.
  BufferId weight(std::string name, const std::string& tensor, std::initializer_list<std::uint64_t> dims);
  BufferId optional_weight(std::string name, const std::string& tensor, std::initializer_list<std::uint64_t> dims);
  BufferId constant(std::string name, std::initializer_list<ir::Dim> dims);
  BufferId state(std::string name, DType dtype, std::initializer_list<ir::Dim> dims);
  BufferId request(std::string name, DType dtype, std::initializer_list<ir::Dim> dims);
  BufferId output(std::string name, DType dtype, std::initializer_list<ir::Dim> dims);
  BufferId activation(std::string name, std::initializer_list<ir::Dim> dims, DType dtype = DType::kF32);

  void set_layer(int layer) { layer_ = layer; }
  std::string at_layer(std::string_view name) const;  // "attn_norm" -> "attn_norm[3]"

  // Nodes. `name` is the output's, without its class prefix.
  BufferId embed(std::string name, BufferId ids, BufferId table, float scale);
  BufferId rms_norm(std::string name, BufferId x, BufferId w, float eps, std::uint32_t group);
  BufferId linear(std::string name, BufferId x, BufferId w, BufferId bias = ir::kNoBuffer);
  BufferId rope(std::string name, BufferId x, BufferId pos, BufferId table, std::uint32_t head_dim, std::uint32_t n_rot,
                bool neox);
  void kv_write(BufferId k, BufferId v, BufferId kv_k, BufferId kv_v, std::uint32_t head_dim);
  struct Attention {
    std::uint32_t n_heads, n_kv_heads, head_dim, v_head_dim;
    float scale;
    std::uint32_t window = 0;
    float softcap = 0;
  };
  BufferId flash_attn(std::string name, BufferId q, BufferId kv_k, BufferId kv_v, const Attention& attention);
  void add_into(BufferId x, BufferId y);  // x = x + y in place
  BufferId glu(std::string name, BufferId gate, BufferId up, std::uint32_t act);
  BufferId scale(std::string name, BufferId x, float factor);
  BufferId softcap(std::string name, BufferId x, float cap);
  // From the hidden state to tokens: gathers the output rows, norm, head, sampling, output ring. Logits are out.logits.
  void head(BufferId hidden, BufferId norm_w, BufferId head_w, float logit_scale, float softcap);

  // Buffers that every family uses.
  BufferId token_ids() const { return token_ids_; }
  BufferId positions() const { return positions_; }

  const ModelConfig& config() const { return config_; }
  const GraphOptions& options() const { return options_; }

  // The graph, or the first mistake. Tensors of the file that no node uses are an error, but for those in `ignored`
  // (prefixes).
  Result<ir::Graph> finish(std::initializer_list<std::string_view> ignored = {});

 private:
  BufferId declare(std::string name, ir::BufferClass buffer_class, DType dtype, std::initializer_list<ir::Dim> dims,
                   std::string tensor = {});
  ir::Node node(ir::Op op, std::initializer_list<BufferId> inputs, std::initializer_list<BufferId> outputs);
  void push(ir::Node node);
  std::uint32_t width(BufferId buffer) const;  // the contiguous extent
  ir::Dim rows(BufferId buffer) const;

  const ModelConfig& config_;
  const Weights& weights_;
  GraphOptions options_;
  ir::Graph graph_;
  int layer_ = -1;
  Status status_;
  std::unordered_set<std::string> used_tensors_;
  BufferId token_ids_, positions_, slots_, page_table_;
};

}  // namespace zinc_rt::arch
