// Prints model cards, memory plans and statistics as JSON.
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

// Adds the keys that only some families have. A key that does not apply to this model is not added.
void add_family_keys(Json& json, const ModelCard& card) {
  const auto add = [&](const char* key, auto value) {
    if (value != 0) json[key] = value;
  };
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

// Counter connects a counter of ModelStats with its name in JSON.
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
    {"drafts", &ModelStats::drafts},
    {"draft_tokens", &ModelStats::draft_tokens},
    {"accepted_draft_tokens", &ModelStats::accepted_draft_tokens},
    {"draft_model_steps", &ModelStats::draft_model_steps},
    {"failed_draft_model_steps", &ModelStats::failed_draft_model_steps},
    {"steps_ahead", &ModelStats::steps_ahead},
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

std::string to_json(const ModelCard& card, CardDetail detail) {
  Json json = Json::object();
  const auto listed = [&](const char* name, Json value) { json[name] = std::move(value); };
  const auto add = [&](const char* name, Json value) {
    if (detail == CardDetail::kAll) json[name] = std::move(value);
  };
  listed("name", card.name);
  add("family", card.family);
  listed("architecture", card.architecture);
  add("size_label", card.size_label);
  listed("n_parameters", card.n_parameters);
  add("n_active_parameters", card.n_active_parameters);
  add("n_layers", card.n_layers);
  add("model_dim", card.model_dim);
  add("ffn_dim", card.ffn_dim);
  add("n_heads", card.n_heads);
  add("n_kv_heads", card.n_kv_heads);
  add("head_dim", card.head_dim);
  add("vocab_size", card.vocab_size);
  listed("context_length", card.context_length);
  add("rope_theta", card.rope_theta);
  add("norm_eps", card.norm_eps);
  add("tied_embeddings", card.tied_embeddings);
  add("tokenizer", {{"model", card.tokenizer.model},
                    {"pre", card.tokenizer.pre},
                    {"n_vocab", card.tokenizer.n_vocab},
                    {"bos_token_id", or_null(card.tokenizer.bos_token_id)},
                    {"eos_token_id", or_null(card.tokenizer.eos_token_id)},
                    {"pad_token_id", or_null(card.tokenizer.pad_token_id)}});
  add("file", card.file);
  listed("file_bytes", card.file_bytes);
  listed("weight_bytes", card.weight_bytes);
  listed("weight_bytes_by_format", object_of(card.weight_bytes_by_format));
  add("computed_bytes_by_format", object_of(card.computed_bytes_by_format));
  add("weight_bytes_read_per_token", card.weight_bytes_read_per_token);
  listed("kv_bytes_per_token", card.kv_bytes_per_token);
  listed("tier", card.tier);
  listed("device", card.device);
  listed("devices", card.devices);
  listed("arithmetic", card.arithmetic);
  listed("arithmetic_version", kArithmeticVersion);
  listed("activations", card.activations);
  listed("kv_dtype", card.kv_dtype);
  add("fusion", card.fusion);
  listed("tool_format", card.tool_format);
  listed("reasoning_format", card.reasoning_format);
  if (!card.pooling.empty()) {
    listed("pooling", card.pooling);
    listed("embedding_dim", card.embedding_dim);
  }
  if (card.draft_model) {
    Json draft{{"name", card.draft_model->name},
               {"architecture", card.draft_model->architecture},
               {"n_parameters", card.draft_model->n_parameters}};
    if (detail == CardDetail::kAll) {
      draft["file"] = card.draft_model->file;
      draft["max_context"] = card.draft_model->max_context;
      draft["kv_pages"] = card.draft_model->kv_pages;
      draft["allocated_bytes"] = card.draft_model->allocated_bytes;
    }
    listed("draft_model", std::move(draft));
  }
  if (detail == CardDetail::kAll) add_family_keys(json, card);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json(const ModelMemory& memory, CardDetail detail) {
  const Json listed{{"max_slots", memory.max_slots},
                    {"max_context", memory.max_context},
                    {"chunk_cap", memory.chunk_cap},
                    {"kv_pages", memory.kv_pages},
                    {"kv_page_bytes", memory.kv_page_bytes}};
  if (detail == CardDetail::kListed) return listed.dump();
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
  Json json{{"tier", memory.tier}};
  json.update(listed);
  json["regions"] = std::move(regions);
  json["allocated_bytes_by_heap"] = object_of(memory.allocated_bytes_by_heap);
  json["allocated_bytes"] = memory.allocated_bytes;
  json["mapped_bytes"] = memory.mapped_bytes;
  json["devices"] = std::move(devices);
  return json.dump();
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
