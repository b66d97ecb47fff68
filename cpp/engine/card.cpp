#include "engine/card.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace zinc_rt {

using Json = nlohmann::ordered_json;

namespace {

bool is_mtp(const Tensor& tensor, const ModelConfig& c) {
  for (std::uint32_t i = 0; i < c.n_mtp_layers; ++i)
    if (tensor.name.starts_with("blk." + std::to_string(c.n_layers + i) + ".")) return true;
  return false;
}

// What only some families have; keys that say nothing of this model are left out.
void add_family_keys(Json& card, const ModelConfig& c, const ExecutorInfo& info) {
  const auto add = [&](const char* key, auto value) {
    if (value != 0) card[key] = value;
  };
  add("sliding_window", c.sliding_window);
  add("n_sliding_layers", std::ranges::count(c.is_sliding, true));
  add("n_shared_kv_layers", c.n_shared_kv_layers);
  if (c.rope_scaling_type != "none")
    card["rope_scaling"] = {{"type", c.rope_scaling_type},
                            {"factor", c.rope_scaling_factor},
                            {"original_context", c.rope_original_context}};
  if (c.n_experts > 0) {
    card["n_experts"] = c.n_experts;
    card["n_experts_used"] = c.n_experts_used;
    card["expert_ffn_dim"] = c.expert_ffn_dim;
    add("shared_expert_ffn_dim", c.shared_expert_ffn_dim);
  }
  if (c.ssm_inner_dim > 0) {
    add("n_recurrent_layers", std::ranges::count(c.is_recurrent, true));
    card["ssm"] = {{"k_heads", c.ssm_k_heads},
                   {"v_heads", c.ssm_v_heads},
                   {"k_dim", c.ssm_k_dim},
                   {"inner_dim", c.ssm_inner_dim},
                   {"conv_width", c.ssm_conv_width}};
  }
  add("n_mtp_layers_not_run", c.n_mtp_layers);
  add("per_layer_embedding_dim", c.per_layer_embedding_dim);
  add("final_logit_softcap", c.final_logit_softcap);
  add("state_bytes_per_slot", info.state_bytes_per_slot);
  add("n_host_expert_layers", info.n_host_expert_layers);
  add("host_expert_bytes", info.host_expert_bytes);
}

Json or_null(std::optional<std::int32_t> id) {
  return id ? Json(*id) : Json();
}

}  // namespace

std::string make_model_card(const Executor& executor, const Tokenizer& tokenizer) {
  const ModelConfig& c = executor.config();
  const Weights& weights = executor.weights();
  std::uint64_t n_parameters = 0, n_active = 0, read_bytes = 0;
  for (const Tensor& tensor : weights.all()) {
    const std::uint64_t n = tensor.n_elements();
    n_parameters += n;
    // A token reads every matrix once, but of embedding tables one row, of the experts those it is sent to, and nothing
    // of the blocks that are not run.
    double share = 1;
    if ((tensor.name == "token_embd.weight" && !c.tied_embeddings) || tensor.name == "per_layer_token_embd.weight")
      share = 1.0 / static_cast<double>(std::max<std::uint64_t>(tensor.dims[1], 1));
    else if (c.n_experts > 0 && tensor.n_dims == 3)
      share = static_cast<double>(c.n_experts_used) / c.n_experts;
    else if (is_mtp(tensor, c))
      share = 0;
    n_active += static_cast<std::uint64_t>(share * static_cast<double>(n));
    read_bytes += static_cast<std::uint64_t>(share * static_cast<double>(tensor.data.size()));
  }
  Json formats = Json::object();
  for (const auto& [dtype, bytes] : weights.bytes_by_dtype()) formats[std::string(to_string(dtype))] = bytes;
  Json card{{"name", c.name},
            {"family", executor.info().family},
            {"architecture", c.architecture},
            {"size_label", c.size_label},
            {"n_parameters", n_parameters},
            {"n_active_parameters", n_active},
            {"n_layers", c.n_layers},
            {"model_dim", c.model_dim},
            {"ffn_dim", c.ffn_dim},
            {"n_heads", c.n_heads},
            {"n_kv_heads", c.n_kv_heads},
            {"head_dim", c.head_dim},
            {"vocab_size", c.vocab_size},
            {"context_length", c.context_length},
            {"rope_theta", c.rope_theta},
            {"norm_eps", c.norm_eps},
            {"tied_embeddings", c.tied_embeddings},
            {"tokenizer",
             {{"model", tokenizer.model()},
              {"pre", tokenizer.pre_tokenizer_name()},
              {"n_vocab", tokenizer.n_vocab()},
              {"bos_token_id", or_null(tokenizer.bos_id())},
              {"eos_token_id", or_null(tokenizer.eos_id())},
              {"pad_token_id", or_null(tokenizer.pad_id())}}},
            {"file", weights.path()},
            {"file_bytes", weights.file_bytes()},
            {"weight_bytes", weights.total_bytes()},
            {"weight_bytes_by_format", formats},
            {"weight_bytes_read_per_token", read_bytes},
            {"kv_bytes_per_token", executor.info().kv_bytes_per_token},
            {"tier", executor.info().tier},
            {"device", executor.info().device},
            {"arithmetic", executor.info().arithmetic},
            {"activations", executor.info().activations},
            {"kv_dtype", executor.info().kv_dtype},
            {"fusion", executor.info().fusion}};
  add_family_keys(card, c, executor.info());
  return card.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string make_plan_json(const MemoryPlan& plan, const ExecutorInfo& info) {
  Json regions = Json::array();
  for (const auto& region : plan.regions)
    regions.push_back({{"name", region.name},
                       {"heap", to_string(region.heap)},
                       {"bytes", region.bytes},
                       {"mapped", region.mapped},
                       {"note", region.note}});
  Json totals = Json::object();
  for (const Heap heap : {Heap::kDeviceLocal, Heap::kBar, Heap::kHostVisible})
    totals[std::string(to_string(heap))] = plan.bytes(heap);
  Json json{{"tier", info.tier},
            {"max_slots", info.max_slots},
            {"max_context", info.max_context},
            {"chunk_cap", info.chunk_cap},
            {"kv_pages", info.n_pages},
            {"kv_page_bytes", info.page_bytes},
            {"regions", regions},
            {"allocated_bytes_by_heap", totals},
            {"allocated_bytes", plan.allocated_bytes()},
            {"mapped_bytes", plan.mapped_bytes()}};
  return json.dump();
}

}  // namespace zinc_rt
