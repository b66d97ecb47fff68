// Makes small MLC folders, right ones and, after a change of their parts, wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "model/mlc/md5.h"

namespace zinc_rt::mlc {

struct FolderMaker {
  using Json = nlohmann::json;
  static constexpr std::uint64_t kDim = 32, kFfn = 64, kHeads = 2, kKvHeads = 1, kHeadDim = 16, kVocab = 6;

  Json config, index, tokenizer, tokenizer_config;
  std::map<std::string, std::vector<std::uint8_t>> shards;  // by file name

  // model_type: llama or phi3. Every parameter has random groups.
  explicit FolderMaker(const std::string& model_type = "llama", std::uint32_t n_layers = 1) {
    const bool phi3 = model_type == "phi3";
    config = {{"model_type", model_type},
              {"quantization", "q4f16_1"},
              {"vocab_size", kVocab},
              {"model_config",
               {{"hidden_size", kDim},
                {"intermediate_size", kFfn},
                {"num_attention_heads", kHeads},
                {"num_key_value_heads", kKvHeads},
                {"num_hidden_layers", n_layers},
                {"head_dim", kHeadDim},
                {"rms_norm_eps", 1e-5},
                {"vocab_size", kVocab},
                {"position_embedding_base", 10000},
                {"context_window_size", 128}}}};
    tokenizer = {
        {"added_tokens", Json::array({{{"id", 4}, {"content", "<end>"}, {"special", true}}})},
        {"normalizer", nullptr},
        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
        {"model",
         {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"c", 3}}}, {"merges", Json::array({"a b"})}}}};
    tokenizer_config = {{"eos_token", "<end>"}, {"chat_template", "{{ messages[0].content }}"}};
    begin_shard();
    const std::string root = phi3 ? "transformer." : "model.";
    quantized(root + (phi3 ? "embd" : "embed_tokens"), kVocab, kDim);
    for (std::uint32_t i = 0; i < n_layers; ++i) {
      const std::string layer = root + (phi3 ? "h." : "layers.") + std::to_string(i) + ".";
      norm(layer + (phi3 ? "ln" : "input_layernorm"));
      quantized(layer + (phi3 ? "mixer.qkv_proj" : "self_attn.qkv_proj"), (kHeads + 2 * kKvHeads) * kHeadDim, kDim);
      quantized(layer + (phi3 ? "mixer.out_proj" : "self_attn.o_proj"), kDim, kHeads * kHeadDim);
      norm(layer + "post_attention_layernorm");
      quantized(layer + "mlp.gate_up_proj", 2 * kFfn, kDim);
      quantized(layer + "mlp.down_proj", kDim, kFfn);
    }
    begin_shard();
    norm(root + "norm");
    quantized("lm_head", kVocab, kDim);
  }

  Json& shard(std::size_t i) { return index["records"][i]; }
  Json& record(const std::string& name) {
    for (Json& shard : index["records"])
      for (Json& record : shard["records"])
        if (record["name"] == name) return record;
    throw std::runtime_error("no record " + name);
  }
  const std::uint8_t* data(const std::string& name) {
    for (Json& shard : index["records"])
      for (Json& record : shard["records"])
        if (record["name"] == name)
          return shards.at(shard["dataPath"].get<std::string>()).data() + record["byteOffset"].get<std::size_t>();
    throw std::runtime_error("no record " + name);
  }

  void sign() {
    for (Json& shard : index["records"])
      if (const auto it = shards.find(shard["dataPath"].get<std::string>()); it != shards.end())
        shard["md5sum"] = md5_hex(std::as_bytes(std::span(it->second)));
  }

  void write(const std::string& folder) const {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const auto put = [&](const std::string& name, const std::string& text) {
      std::ofstream(folder + "/" + name, std::ios::binary) << text;
    };
    put("mlc-chat-config.json", config.dump());
    put("ndarray-cache.json", index.dump());
    put("tokenizer.json", tokenizer.dump());
    if (!tokenizer_config.is_null()) put("tokenizer_config.json", tokenizer_config.dump());
    for (const auto& [name, bytes] : shards) put(name, std::string(bytes.begin(), bytes.end()));
  }

 private:
  void begin_shard() {
    const std::string name = "params_shard_" + std::to_string(shards.size()) + ".bin";
    shards[name];
    index["records"].push_back(
        {{"dataPath", name}, {"format", "raw-shard"}, {"nbytes", 0}, {"records", Json::array()}});
  }
  void add(const std::string& name, const std::vector<std::uint64_t>& shape, const char* dtype, std::size_t element) {
    Json& shard = index["records"].back();
    auto& bytes = shards[shard["dataPath"]];
    std::size_t n = element;
    for (const std::uint64_t extent : shape) n *= extent;
    shard["records"].push_back({{"name", name},
                                {"shape", shape},
                                {"dtype", dtype},
                                {"format", "f32-to-bf16"},
                                {"nbytes", n},
                                {"byteOffset", bytes.size()}});
    for (std::size_t i = 0; i < n; ++i) {
      auto byte = static_cast<std::uint8_t>(random_());
      if (element == 2 && i % 2 == 1) byte = static_cast<std::uint8_t>(0x20 | (byte & 0x9b));  // no f16 NaN
      bytes.push_back(byte);
    }
    shard["nbytes"] = bytes.size();
    sign();
  }
  void quantized(const std::string& name, std::uint64_t n_rows, std::uint64_t n_columns) {
    add(name + ".q_weight", {n_rows, n_columns / 8}, "uint32", 4);
    add(name + ".q_scale", {n_rows, n_columns / 32}, "float16", 2);
  }
  void norm(const std::string& name) { add(name + ".weight", {kDim}, "float16", 2); }

  std::mt19937 random_{7};
};

}  // namespace zinc_rt::mlc
