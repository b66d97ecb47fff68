#include "engine/card.h"

#include <algorithm>

namespace zinc_rt {
namespace {

bool is_mtp(const Tensor& tensor, const ModelConfig& c) {
  for (std::uint32_t i = 0; i < c.n_mtp_layers; ++i)
    if (tensor.name.starts_with("blk." + std::to_string(c.n_layers + i) + ".")) return true;
  return false;
}

// Counts parameters, and the bytes that are read per token. To compute a token, every matrix is read once, with three
// exceptions. A table (embeddings, positions, types) that is not also the output matrix counts one row. Experts count
// only if they are chosen. Blocks that are not run count nothing.
void count_weights(const Weights& weights, const ModelConfig& c, bool has_output, ModelCard& card) {
  constexpr std::string_view kTables[] = {"per_layer_token_embd.weight", "position_embd.weight", "token_types.weight"};
  for (const Tensor& tensor : weights.all()) {
    const std::uint64_t n = tensor.n_elements();
    card.n_parameters += n;
    double share = 1;
    if ((tensor.name == "token_embd.weight" && !(has_output && c.tied_embeddings)) ||
        std::ranges::find(kTables, tensor.name) != std::end(kTables))
      share = 1.0 / static_cast<double>(std::max<std::uint64_t>(tensor.dims[1], 1));
    else if (c.n_experts > 0 && tensor.n_dims == 3)
      share = static_cast<double>(c.n_experts_used) / c.n_experts;
    else if (is_mtp(tensor, c))
      share = 0;
    else if (!has_output && tensor.name == "output.weight")
      share = 0;
    card.n_active_parameters += static_cast<std::uint64_t>(share * static_cast<double>(n));
    card.weight_bytes_read_per_token +=
        static_cast<std::uint64_t>(share * static_cast<double>(tensor.computed_bytes()));
  }
}

}  // namespace

ModelCard make_model_card(const Executor& executor, const Tokenizer& tokenizer) {
  const ModelConfig& c = executor.config();
  const Weights& weights = executor.weights();
  const ExecutorInfo& info = executor.info();
  ModelCard card;
  card.name = c.name;
  card.family = info.family;
  card.architecture = c.architecture;
  card.size_label = c.size_label;
  card.n_layers = c.n_layers;
  card.model_dim = c.model_dim;
  card.ffn_dim = c.ffn_dim;
  card.n_heads = c.n_heads;
  card.n_kv_heads = c.n_kv_heads;
  card.head_dim = c.head_dim;
  card.vocab_size = c.vocab_size;
  card.context_length = c.context_length;
  // A model with a table of positions has no RoPE, so rope_theta is 0.
  card.rope_theta = weights.find("position_embd.weight") == nullptr ? c.rope_theta : 0;
  card.norm_eps = c.norm_eps;
  card.tied_embeddings = c.tied_embeddings;
  card.tokenizer = {std::string(tokenizer.model()),
                    std::string(tokenizer.pre_tokenizer_name()),
                    tokenizer.n_vocab(),
                    tokenizer.bos_id(),
                    tokenizer.eos_id(),
                    tokenizer.pad_id()};
  card.file = weights.path();
  card.file_bytes = weights.file_bytes();
  card.weight_bytes = weights.total_bytes();
  for (const auto& [dtype, bytes] : weights.bytes_by_dtype())
    card.weight_bytes_by_format.emplace_back(to_string(dtype), bytes);
  for (const auto& [dtype, bytes] : weights.computed_bytes_by_dtype())
    card.computed_bytes_by_format.emplace_back(to_string(dtype), bytes);
  count_weights(weights, c, info.pooling == Pooling::kNone, card);
  card.kv_bytes_per_token = info.kv_bytes_per_token;
  card.tier = info.tier;
  card.device = info.device;
  card.arithmetic = to_string(info.arithmetic);
  card.activations = to_string(info.activations);
  card.kv_dtype = info.kv_dtype;
  if (info.pooling != Pooling::kNone) {
    card.pooling = to_string(info.pooling);
    card.embedding_dim = info.embedding_dim;
  }
  card.fusion = info.fusion;
  card.sliding_window = c.sliding_window;
  card.n_sliding_layers = static_cast<std::uint64_t>(std::ranges::count(c.is_sliding, true));
  card.n_shared_kv_layers = c.n_shared_kv_layers;
  if (c.rope_scaling_type != "none")
    card.rope_scaling = {c.rope_scaling_type, c.rope_scaling_factor, c.rope_original_context};
  card.n_experts = c.n_experts;
  if (c.n_experts > 0) {
    card.n_experts_used = c.n_experts_used;
    card.expert_ffn_dim = c.expert_ffn_dim;
    card.shared_expert_ffn_dim = c.shared_expert_ffn_dim;
  }
  card.n_recurrent_layers = static_cast<std::uint64_t>(std::ranges::count(c.is_recurrent, true));
  if (c.ssm_inner_dim > 0) card.ssm = {c.ssm_k_heads, c.ssm_v_heads, c.ssm_k_dim, c.ssm_inner_dim, c.ssm_conv_width};
  card.n_mtp_layers_not_run = c.n_mtp_layers;
  card.per_layer_embedding_dim = c.per_layer_embedding_dim;
  card.final_logit_softcap = c.final_logit_softcap;
  card.state_bytes_per_slot = info.state_bytes_per_slot;
  card.n_host_expert_layers = info.n_host_expert_layers;
  card.host_expert_bytes = info.host_expert_bytes;
  return card;
}

namespace {

// Adds the regions of a plan to the memory's regions, with `prefix` before their names, and its bytes to the sums.
void add_plan(const MemoryPlan& plan, std::string_view prefix, ModelMemory& memory) {
  for (const auto& region : plan.regions)
    memory.regions.push_back({std::string(prefix) + region.name, std::string(to_string(region.heap)), region.bytes,
                              region.mapped, region.note});
  memory.allocated_bytes += plan.allocated_bytes();
  memory.mapped_bytes += plan.mapped_bytes();
  for (std::size_t i = 0; const Heap heap : {Heap::kDeviceLocal, Heap::kBar, Heap::kHostVisible}) {
    if (i == memory.allocated_bytes_by_heap.size()) memory.allocated_bytes_by_heap.emplace_back(to_string(heap), 0);
    memory.allocated_bytes_by_heap[i++].second += plan.bytes(heap);
  }
}

}  // namespace

void add_draft_model(const Executor& draft, ModelCard& card, ModelMemory& memory) {
  std::uint64_t n_parameters = 0;
  for (const Tensor& tensor : draft.weights().all()) n_parameters += tensor.n_elements();
  card.draft_model = {.name = draft.config().name,
                      .architecture = draft.config().architecture,
                      .file = draft.weights().path(),
                      .n_parameters = n_parameters,
                      .max_context = draft.info().max_context,
                      .kv_pages = draft.info().n_pages,
                      .allocated_bytes = draft.plan().allocated_bytes()};
  // Of the model's own blocks, or of those in a file of their own, the first one runs.
  if (draft.info().reads.width > 0 && draft.config().n_mtp_layers > 0 && card.n_mtp_layers_not_run > 0)
    --card.n_mtp_layers_not_run;
  add_plan(draft.plan(), "draft.", memory);
}

ModelMemory make_model_memory(const MemoryPlan& plan, const ExecutorInfo& info) {
  ModelMemory memory{.tier = info.tier,
                     .max_slots = info.max_slots,
                     .max_context = info.max_context,
                     .chunk_cap = info.chunk_cap,
                     .kv_pages = info.n_pages,
                     .kv_page_bytes = info.page_bytes,
                     .regions = {},
                     .allocated_bytes_by_heap = {},
                     .devices = {}};
  add_plan(plan, "", memory);
  return memory;
}

}  // namespace zinc_rt
