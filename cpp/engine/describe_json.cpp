// The JSON of model cards, memory plans and statistics.
#include <nlohmann/json.hpp>

#include "zinc_rt/model_card.h"
#include "zinc_rt/stats.h"
#include "zinc_rt/version.h"

namespace zinc_rt {
namespace {

using Json = nlohmann::ordered_json;

Json or_null(std::optional<std::int32_t> id) {
  return id ? Json(*id) : Json();
}

Json object_of(const std::vector<std::pair<std::string, std::uint64_t>>& numbers) {
  Json json = Json::object();
  for (const auto& [name, number] : numbers) json[name] = number;
  return json;
}

// Adds what only some families have. Keys that say nothing about this model are left out.
void add_family_keys(Json& json, const ModelCard& card) {
  const auto add = [&](const char* key, auto value) {
    if (value != 0) json[key] = value;
  };
  if (!card.pooling.empty()) {
    json["pooling"] = card.pooling;
    json["embedding_dim"] = card.embedding_dim;
  }
  add("sliding_window", card.sliding_window);
  add("n_sliding_layers", card.n_sliding_layers);
  add("n_shared_kv_layers", card.n_shared_kv_layers);
  if (card.rope_scaling)
    json["rope_scaling"] = {{"type", card.rope_scaling->type},
                            {"factor", card.rope_scaling->factor},
                            {"original_context", card.rope_scaling->original_context}};
  if (card.n_experts > 0) {
    json["n_experts"] = card.n_experts;
    json["n_experts_used"] = card.n_experts_used;
    json["expert_ffn_dim"] = card.expert_ffn_dim;
    add("shared_expert_ffn_dim", card.shared_expert_ffn_dim);
  }
  add("n_recurrent_layers", card.n_recurrent_layers);
  if (card.ssm)
    json["ssm"] = {{"k_heads", card.ssm->k_heads},
                   {"v_heads", card.ssm->v_heads},
                   {"k_dim", card.ssm->k_dim},
                   {"inner_dim", card.ssm->inner_dim},
                   {"conv_width", card.ssm->conv_width}};
  add("n_mtp_layers_not_run", card.n_mtp_layers_not_run);
  add("per_layer_embedding_dim", card.per_layer_embedding_dim);
  add("final_logit_softcap", card.final_logit_softcap);
  add("state_bytes_per_slot", card.state_bytes_per_slot);
  add("n_host_expert_layers", card.n_host_expert_layers);
  add("host_expert_bytes", card.host_expert_bytes);
}

// The counters of a model and their names in JSON.
struct Counter {
  const char* name;
  std::uint64_t ModelStats::* value;
};
constexpr Counter kCounters[] = {
    {"steps", &ModelStats::steps},
    {"step_tokens", &ModelStats::step_tokens},
    {"decode_tokens", &ModelStats::decode_tokens},
    {"prefill_tokens", &ModelStats::prefill_tokens},
    {"generated_tokens", &ModelStats::generated_tokens},
    {"running", &ModelStats::running},
    {"waiting", &ModelStats::waiting},
    {"backlog_tokens", &ModelStats::backlog_tokens},
    {"slots", &ModelStats::slots},
    {"slots_free", &ModelStats::slots_free},
    {"pages", &ModelStats::pages},
    {"pages_free", &ModelStats::pages_free},
    {"pages_cached", &ModelStats::pages_cached},
    {"page_evictions", &ModelStats::page_evictions},
    {"admissions", &ModelStats::admissions},
    {"preemptions", &ModelStats::preemptions},
    {"prompt_tokens", &ModelStats::prompt_tokens},
    {"cached_tokens", &ModelStats::cached_tokens},
    {"internal_errors", &ModelStats::internal_errors},
    {"failed_steps", &ModelStats::failed_steps},
    {"bad_logits", &ModelStats::bad_logits},
    {"failed_steps_in_a_row", &ModelStats::failed_steps_in_a_row},
    {"allocated_bytes", &ModelStats::allocated_bytes},
};

}  // namespace

std::string to_json(const ModelCard& card) {
  Json json{{"name", card.name},
            {"family", card.family},
            {"architecture", card.architecture},
            {"size_label", card.size_label},
            {"n_parameters", card.n_parameters},
            {"n_active_parameters", card.n_active_parameters},
            {"n_layers", card.n_layers},
            {"model_dim", card.model_dim},
            {"ffn_dim", card.ffn_dim},
            {"n_heads", card.n_heads},
            {"n_kv_heads", card.n_kv_heads},
            {"head_dim", card.head_dim},
            {"vocab_size", card.vocab_size},
            {"context_length", card.context_length},
            {"rope_theta", card.rope_theta},
            {"norm_eps", card.norm_eps},
            {"tied_embeddings", card.tied_embeddings},
            {"tokenizer",
             {{"model", card.tokenizer.model},
              {"pre", card.tokenizer.pre},
              {"n_vocab", card.tokenizer.n_vocab},
              {"bos_token_id", or_null(card.tokenizer.bos_token_id)},
              {"eos_token_id", or_null(card.tokenizer.eos_token_id)},
              {"pad_token_id", or_null(card.tokenizer.pad_token_id)}}},
            {"file", card.file},
            {"file_bytes", card.file_bytes},
            {"weight_bytes", card.weight_bytes},
            {"weight_bytes_by_format", object_of(card.weight_bytes_by_format)},
            {"computed_bytes_by_format", object_of(card.computed_bytes_by_format)},
            {"weight_bytes_read_per_token", card.weight_bytes_read_per_token},
            {"kv_bytes_per_token", card.kv_bytes_per_token},
            {"tier", card.tier},
            {"device", card.device},
            {"devices", card.devices},
            {"arithmetic", card.arithmetic},
            {"arithmetic_version", kArithmeticVersion},
            {"activations", card.activations},
            {"kv_dtype", card.kv_dtype},
            {"fusion", card.fusion},
            {"tool_format", card.tool_format},
            {"reasoning_format", card.reasoning_format}};
  add_family_keys(json, card);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const ModelMemory& memory) {
  Json regions = Json::array();
  for (const auto& region : memory.regions)
    regions.push_back({{"name", region.name},
                       {"heap", region.heap},
                       {"bytes", region.bytes},
                       {"mapped", region.mapped},
                       {"note", region.note}});
  Json devices = Json::array();
  for (const auto& device : memory.devices)
    devices.push_back({{"device", device.index},
                       {"name", device.name},
                       {"max_slots", device.max_slots},
                       {"kv_pages", device.kv_pages},
                       {"allocated_bytes", device.allocated_bytes},
                       {"mapped_bytes", device.mapped_bytes}});
  return Json{{"tier", memory.tier},
              {"max_slots", memory.max_slots},
              {"max_context", memory.max_context},
              {"chunk_cap", memory.chunk_cap},
              {"kv_pages", memory.kv_pages},
              {"kv_page_bytes", memory.kv_page_bytes},
              {"regions", std::move(regions)},
              {"allocated_bytes_by_heap", object_of(memory.allocated_bytes_by_heap)},
              {"allocated_bytes", memory.allocated_bytes},
              {"mapped_bytes", memory.mapped_bytes},
              {"devices", std::move(devices)}}
      .dump();
}

std::string to_json(const EngineStats& stats) {
  Json json = Json::object(), models = Json::array();
  for (const ModelStats& model : stats.models) {
    Json one{{"name", model.name}, {"tier", model.tier}};
    for (const Counter& counter : kCounters) one[counter.name] = model.*counter.value;
    for (const auto& device : model.devices) {
      Json part{{"device", device.index}};
      for (const Counter& counter : kCounters) part[counter.name] = device.stats.*counter.value;
      one["devices"].push_back(std::move(part));
    }
    models.push_back(std::move(one));
  }
  if (!stats.models.empty())
    for (const Counter& counter : kCounters) json[counter.name] = stats.total.*counter.value;
  json["tier"] = stats.total.tier;
  json["prefix_hit_rate"] = stats.prefix_hit_rate;
  json["largest_prefill_difference"] = stats.largest_prefill_difference;
  json["models"] = std::move(models);
  return json.dump();
}

}  // namespace zinc_rt
