// Describes a model (ModelCard) and the memory that it takes (ModelMemory).
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zinc_rt {

// Describes a model. Numbers that do not apply to the model's family are 0.
struct ModelCard {
  struct TokenizerCard {
    std::string model, pre;
    std::uint64_t n_vocab = 0;
    std::optional<std::int32_t> bos_token_id, eos_token_id, pad_token_id;
  };
  struct RopeScaling {
    std::string type;  // RoPE scaling: linear, yarn or longrope
    double factor = 1;
    std::uint32_t original_context = 0;
  };
  struct Ssm {  // describes the recurrent layers, if there are any
    std::uint32_t k_heads = 0, v_heads = 0, k_dim = 0, inner_dim = 0, conv_width = 0;
  };

  struct DraftModel {  // describes the model that guesses tokens for this one (docs/speculation.md)
    std::string name, architecture, file;
    std::uint64_t n_parameters = 0;
    std::uint32_t max_context = 0, kv_pages = 0;  // on the first device, as allocated_bytes is
    std::uint64_t allocated_bytes = 0;
  };

  std::string name, family, architecture, size_label;
  std::uint64_t n_parameters = 0;
  // Counts the parameters that are used for one token. In a mixture of experts this is less than n_parameters.
  std::uint64_t n_active_parameters = 0;
  std::uint32_t n_layers = 0, model_dim = 0, ffn_dim = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::uint32_t vocab_size = 0, context_length = 0;
  double rope_theta = 0, norm_eps = 0;
  bool tied_embeddings = false;
  TokenizerCard tokenizer;
  std::string file;
  std::uint64_t file_bytes = 0, weight_bytes = 0;
  std::vector<std::pair<std::string, std::uint64_t>> weight_bytes_by_format;
  // Counts the bytes of weights by the formats in which the kernels read them. Most F16 and BF16 matrices become
  // fixed16 (docs/arithmetic.md, rule 4).
  std::vector<std::pair<std::string, std::uint64_t>> computed_bytes_by_format;
  std::uint64_t weight_bytes_read_per_token = 0, kv_bytes_per_token = 0;
  // The following members say where and how the model runs.
  std::string tier, device, arithmetic, activations, kv_dtype, fusion;  // `device` describes the device devices[0]
  std::vector<std::uint32_t> devices;  // the numbers of the devices that hold a replica of the model
  // The chat template writes tool calls and reasoning in these formats (docs/agents.md lists them). tool_format is
  // empty if the template does not show tools.
  std::string tool_format, reasoning_format;

  // `pooling` and `embedding_dim` say what the model computes. If it embeds texts, `pooling` is "mean", "cls" or
  // "last", and embedding_dim is the length of an embedding. If it scores pairs of texts, `pooling` is "rank" and
  // embedding_dim is 1. If it generates tokens, `pooling` is empty and embedding_dim is 0.
  std::string pooling;
  std::uint32_t embedding_dim = 0;

  std::uint32_t sliding_window = 0;
  std::uint64_t n_sliding_layers = 0;
  std::uint32_t n_shared_kv_layers = 0;
  std::optional<RopeScaling> rope_scaling;
  std::uint32_t n_experts = 0, n_experts_used = 0, expert_ffn_dim = 0, shared_expert_ffn_dim = 0;
  std::uint64_t n_recurrent_layers = 0;
  std::optional<Ssm> ssm;
  std::uint32_t n_mtp_layers_not_run = 0, per_layer_embedding_dim = 0;
  double final_logit_softcap = 0;
  std::uint64_t state_bytes_per_slot = 0;
  std::uint32_t n_host_expert_layers = 0;
  std::uint64_t host_expert_bytes = 0;
  std::optional<DraftModel> draft_model;
};

// ModelMemory describes the memory that a model uses, with that of its draft model, whose regions' names begin with
// "draft.". `regions` lists the memory regions on the first device, and `devices` the sums for each device. The regions that are not mapped add up to what the tier allocates on a device.
struct ModelMemory {
  struct Device {
    std::uint32_t index = 0;  // number of the device in its tier
    std::string name;         // description of the device, for display
    std::uint32_t max_slots = 0, kv_pages = 0;
    std::uint64_t allocated_bytes = 0, mapped_bytes = 0;
  };
  struct Region {
    std::string name, heap;  // for example "kv_pages" and "device_local"
    std::uint64_t bytes = 0;
    // True if the bytes are read in the mapped model file, so that nothing is allocated for the region.
    bool mapped = false;
    std::string note;  // how the size was computed
  };
  std::string tier;
  std::uint32_t max_slots = 0, max_context = 0, chunk_cap = 0, kv_pages = 0;
  std::uint64_t kv_page_bytes = 0;
  std::vector<Region> regions;
  std::vector<std::pair<std::string, std::uint64_t>> allocated_bytes_by_heap;
  std::uint64_t allocated_bytes = 0, mapped_bytes = 0;
  std::vector<Device> devices;

  std::uint32_t slots_of_all_devices() const {
    std::uint32_t n = 0;
    for (const Device& device : devices) n += device.max_slots;
    return n;
  }
};

enum class CardDetail : std::uint8_t {
  kAll,
  kListed,  // only the fields that a list of models shows
};
// Return one JSON object. Numbers that do not apply to the model's family are left out.
std::string to_json(const ModelCard& card, CardDetail detail = CardDetail::kAll);
std::string to_json(const ModelMemory& memory, CardDetail detail = CardDetail::kAll);

}  // namespace zinc_rt
