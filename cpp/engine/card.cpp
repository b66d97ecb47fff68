#include "engine/card.h"

#include <nlohmann/json.hpp>

namespace zinc_rt {

using Json = nlohmann::ordered_json;

std::string make_model_card(const Executor& executor, const Tokenizer& tokenizer) {
  const ModelConfig& c = executor.config();
  const Weights& weights = executor.weights();
  std::uint64_t n_parameters = 0, read_bytes = 0;
  for (const Tensor& tensor : weights.all()) {
    n_parameters += tensor.n_elements();
    // A token reads every matrix once, but of the embedding one row, and of the experts those it is sent to.
    if (tensor.name == "token_embd.weight" && !c.tied_embeddings)
      read_bytes += tensor.data.size() / std::max<std::uint64_t>(tensor.dims[1], 1);
    else if (c.n_experts > 0 && tensor.n_dims == 3)
      read_bytes += tensor.data.size() / c.n_experts * c.n_experts_used;
    else
      read_bytes += tensor.data.size();
  }
  Json formats = Json::object();
  for (const auto& [dtype, bytes] : weights.bytes_by_dtype()) formats[std::string(to_string(dtype))] = bytes;
  Json card{{"name", c.name},
            {"architecture", c.architecture},
            {"size_label", c.size_label},
            {"n_parameters", n_parameters},
            {"n_layers", c.n_layers},
            {"model_dim", c.model_dim},
            {"ffn_dim", c.ffn_dim},
            {"n_heads", c.n_heads},
            {"n_kv_heads", c.n_kv_heads},
            {"head_dim", c.head_dim},
            {"vocab_size", c.vocab_size},
            {"context_length", c.context_length},
            {"sliding_window", c.sliding_window},
            {"rope_theta", c.rope_theta},
            {"norm_eps", c.norm_eps},
            {"tied_embeddings", c.tied_embeddings},
            {"n_experts", c.n_experts},
            {"n_experts_used", c.n_experts_used},
            {"tokenizer",
             {{"model", tokenizer.model()}, {"pre", tokenizer.pre_tokenizer_name()}, {"n_vocab", tokenizer.n_vocab()}}},
            {"file", weights.path()},
            {"file_bytes", weights.file_bytes()},
            {"weight_bytes", weights.total_bytes()},
            {"weight_bytes_by_format", formats},
            {"weight_bytes_read_per_token", read_bytes},
            {"kv_bytes_per_token", executor.info().kv_bytes_per_token},
            {"tier", executor.info().tier},
            {"arithmetic", executor.info().arithmetic},
            {"activations", executor.info().activations}};
  return card.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string make_plan_json(const mem::MemoryPlan& plan, const ExecutorInfo& info) {
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
