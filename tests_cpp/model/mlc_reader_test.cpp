// A right folder gives the tensors of its parameters, value for value; each kind of damage gives its error.
#include "model/mlc/reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "kernels/common/half.h"
#include "model/config.h"
#include "tests_cpp/model/mlc_folder.h"

namespace zinc_rt::mlc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class MlcReader : public ::testing::Test {
 protected:
  MlcReader()
      : folder_(::testing::TempDir() + "mlc_" + ::testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~MlcReader() override { std::filesystem::remove_all(folder_); }

  Error error_of(const FolderMaker& maker) {
    maker.write(folder_);
    const auto weights = Weights::open(folder_);
    EXPECT_FALSE(weights) << "accepted";
    return weights ? Error{} : weights.error();
  }

  std::string folder_;
};

// (n - 7) * s of one element of a quantized parameter.
float mlc_value(FolderMaker& maker, const std::string& name, std::uint64_t n_columns, std::uint64_t row,
                std::uint64_t column) {
  std::uint32_t word = 0;
  std::memcpy(&word, maker.data(name + ".q_weight") + (row * n_columns / 8 + column / 8) * 4, 4);
  std::uint16_t scale = 0;
  std::memcpy(&scale, maker.data(name + ".q_scale") + (row * n_columns / 32 + column / 32) * 2, 2);
  return (static_cast<float>(word >> 4 * (column % 8) & 15) - 7) * f16_to_f32(scale);
}

// (n - 8) * d of one element of a Q4_0 tensor, or an f32.
float gguf_value(const Tensor& tensor, std::uint64_t row, std::uint64_t column) {
  if (tensor.dtype == DType::kF32) {
    float value = 0;
    std::memcpy(&value, tensor.data.data() + (row * tensor.dims[0] + column) * 4, 4);
    return value;
  }
  const std::byte* block = tensor.data.data() + (row * tensor.dims[0] / 32 + column / 32) * 18;
  std::uint16_t d = 0;
  std::memcpy(&d, block, 2);
  const auto byte = std::to_integer<unsigned>(block[2 + column % 16]);
  return (static_cast<float>(column % 32 < 16 ? byte & 15 : byte >> 4) - 8) * f16_to_f32(d);
}

void expect_rows(FolderMaker& maker, const Weights& weights, const std::string& param, std::uint64_t first_row,
                 const std::string& tensor_name, const std::function<std::uint64_t(std::uint64_t)>& mlc_row) {
  const Tensor* tensor = weights.find(tensor_name);
  ASSERT_NE(tensor, nullptr) << tensor_name;
  EXPECT_EQ(tensor->dtype, DType::kQ4_0);
  for (std::uint64_t row = 0; row < tensor->dims[1]; ++row)
    for (std::uint64_t column = 0; column < tensor->dims[0]; ++column) {
      const float wanted = mlc_value(maker, param, tensor->dims[0], first_row + mlc_row(row), column);
      ASSERT_EQ(gguf_value(*tensor, row, column), wanted) << tensor_name << " " << row << " " << column;
    }
}

std::uint64_t same(std::uint64_t row) {
  return row;
}
// Row 2 i + t of a GGUF head is row t * 8 + i of MLC's, for heads of 16.
std::uint64_t rotated(std::uint64_t row) {
  return row / 16 * 16 + row % 2 * 8 + row % 16 / 2;
}

TEST_F(MlcReader, LlamaParametersBecomeTensorsOfTheSameValues) {
  FolderMaker maker("llama", 2);
  maker.write(folder_);
  const auto weights = Weights::open(folder_);
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->all().size(), 3U + 2 * 9);
  expect_rows(maker, *weights, "model.embed_tokens", 0, "token_embd.weight", same);
  expect_rows(maker, *weights, "lm_head", 0, "output.weight", same);
  for (const std::string i : {"0", "1"}) {
    const std::string layer = "model.layers." + i, blk = "blk." + i;
    expect_rows(maker, *weights, layer + ".self_attn.qkv_proj", 0, blk + ".attn_q.weight", rotated);
    expect_rows(maker, *weights, layer + ".self_attn.qkv_proj", 32, blk + ".attn_k.weight", rotated);
    expect_rows(maker, *weights, layer + ".self_attn.qkv_proj", 48, blk + ".attn_v.weight", same);
    expect_rows(maker, *weights, layer + ".self_attn.o_proj", 0, blk + ".attn_output.weight", same);
    expect_rows(maker, *weights, layer + ".mlp.gate_up_proj", 0, blk + ".ffn_gate.weight", same);
    expect_rows(maker, *weights, layer + ".mlp.gate_up_proj", 64, blk + ".ffn_up.weight", same);
    expect_rows(maker, *weights, layer + ".mlp.down_proj", 0, blk + ".ffn_down.weight", same);
    for (std::uint64_t c = 0; c < FolderMaker::kDim; ++c) {
      std::uint16_t half = 0;
      std::memcpy(&half, maker.data(layer + ".input_layernorm.weight") + 2 * c, 2);
      EXPECT_EQ(gguf_value(*weights->find(blk + ".attn_norm.weight"), 0, c), f16_to_f32(half));
    }
  }
  const auto config = read_config(weights->metadata(), weights->infos());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->n_layers, 2U);
  EXPECT_EQ(config->n_kv_heads, 1U);
  EXPECT_EQ(config->head_dim, 16U);
  EXPECT_EQ(config->ffn_dim, 64U);
  EXPECT_EQ(config->vocab_size, 6U);
  EXPECT_FALSE(config->tied_embeddings);
  const auto tokens = weights->metadata().get_strings("tokenizer.ggml.tokens");
  EXPECT_THAT(std::vector<std::string>(tokens->begin(), tokens->end()),
              ::testing::ElementsAre("a", "b", "ab", "c", "<end>", "[PAD5]"));
  EXPECT_EQ(weights->metadata().get_int("tokenizer.ggml.eos_token_id"), 4);
  EXPECT_EQ(weights->metadata().get_string("tokenizer.ggml.pre"), "gpt-2");
  EXPECT_EQ(weights->metadata().get_string("tokenizer.chat_template"), "{{ messages[0].content }}");
}

TEST_F(MlcReader, Phi3StaysFusedUnderAllItsNamings) {
  for (const char* const prefix : {"transformer.", "model."}) {
    FolderMaker maker("phi3");
    if (prefix != std::string("transformer.")) {
      maker.config["model_type"] = "phi3_v";
      for (Json& shard : maker.index["records"])
        for (Json& record : shard["records"]) {
          std::string name = record["name"];
          if (name.starts_with("transformer.")) record["name"] = prefix + name.substr(12);
        }
    }
    maker.write(folder_);
    const auto weights = Weights::open(folder_);
    ASSERT_TRUE(weights) << weights.error().message;
    EXPECT_EQ(weights->all().size(), 3U + 6);
    const std::string layer = prefix + std::string("h.0");
    expect_rows(maker, *weights, layer + ".mixer.qkv_proj", 0, "blk.0.attn_qkv.weight", same);
    expect_rows(maker, *weights, layer + ".mlp.gate_up_proj", 0, "blk.0.ffn_up.weight", same);
    EXPECT_EQ(weights->metadata().get_int("phi3.rope.dimension_count"), 16);
  }
}

TEST_F(MlcReader, NamedTemplatesAreKept) {
  FolderMaker maker;
  maker.tokenizer_config["chat_template"] = {{{"name", "default"}, {"template", "d"}},
                                             {{"name", "tool_use"}, {"template", "t"}}};
  maker.write(folder_);
  const auto weights = Weights::open(folder_);
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->metadata().get_string("tokenizer.chat_template"), "d");
  EXPECT_EQ(weights->metadata().get_string("tokenizer.chat_template.tool_use"), "t");
}

TEST_F(MlcReader, TheNewerIndexNameAndNoTokenizerConfig) {
  FolderMaker maker;
  maker.tokenizer_config = nullptr;
  maker.config["bos_token_id"] = 0;
  maker.config["eos_token_id"] = {4, 3};
  maker.write(folder_);
  std::filesystem::rename(folder_ + "/ndarray-cache.json", folder_ + "/tensor-cache.json");
  const auto weights = Weights::open(folder_ + "/");
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->metadata().get_int("tokenizer.ggml.bos_token_id"), 0);
  EXPECT_EQ(weights->metadata().get_int("tokenizer.ggml.eos_token_id"), 4);
  EXPECT_EQ(weights->metadata().get_int("tokenizer.ggml.eot_token_id"), 3);
  EXPECT_EQ(weights->metadata().get_ints("tokenizer.ggml.eos_token_ids"), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(weights->metadata().get_string("general.name"), std::filesystem::path(folder_).filename().string());
  EXPECT_EQ(weights->file_bytes(),
            maker.shards.at("params_shard_0.bin").size() + maker.shards.at("params_shard_1.bin").size());
  const auto metadata = Weights::open_metadata(folder_);
  ASSERT_TRUE(metadata);
  EXPECT_EQ(metadata->entries().size(), weights->metadata().entries().size());
}

// Index and shards of two models: the first shard that differs is named with both sizes, or both sums.
TEST_F(MlcReader, AnIndexWithTheShardsOfAnotherVersion) {
  FolderMaker maker;
  auto& bytes = maker.shards["params_shard_1.bin"];
  const std::size_t before = bytes.size();
  bytes.resize(before - 16);
  EXPECT_THAT(
      error_of(maker).message,
      HasSubstr(fmt::format("shard params_shard_1.bin: {} bytes by the index, {} there; index and shards must be "
                            "of one version",
                            before, before - 16)));
  bytes.resize(before);
  const std::string wanted = maker.shard(1)["md5sum"];
  const std::string there = md5_hex(std::as_bytes(std::span(bytes)));
  const Error error = error_of(maker);
  EXPECT_EQ(error.code, StatusCode::kCorrupt);
  EXPECT_THAT(error.message,
              HasSubstr("shard params_shard_1.bin: MD5 " + wanted + " by the index, " + there + " there"));
  maker.sign();
  maker.write(folder_);
  EXPECT_TRUE(Weights::open(folder_));
  maker.shards.erase("params_shard_0.bin");
  EXPECT_EQ(error_of(maker).code, StatusCode::kNotFound);
  EXPECT_THAT(error_of(maker).message, HasSubstr("shard params_shard_0.bin of"));
}

struct Damage {
  const char* name;
  std::function<void(FolderMaker&)> apply;
  const char* message;
};

TEST_F(MlcReader, EachDamageHasItsError) {
  const std::string qkv = "model.layers.0.self_attn.qkv_proj.q_weight";
  const auto model = [](FolderMaker& m) -> Json& { return m.config["model_config"]; };
  const Damage rows[] = {
      {"offset", [&](FolderMaker& m) { m.record(qkv)["byteOffset"] = 1 << 20; }, "bytes at offset 1048576, the shard"},
      {"overlap", [&](FolderMaker& m) { m.record(qkv)["byteOffset"] = 4; },
       "starts at 4 of params_shard_0.bin, inside"},
      {"nbytes", [&](FolderMaker& m) { m.record(qkv)["nbytes"] = 100; },
       "says 100, the shape and the type uint32 say 1024"},
      {"shape", [&](FolderMaker& m) { m.record(qkv)["shape"] = {32, 8}; },
       "qkv_proj.q_weight needs [64, 4] by mlc-chat-config.json, [32, 8] there"},
      {"dtype", [&](FolderMaker& m) { m.record(qkv)["dtype"] = "int3"; }, "needs uint32, float16, float32 or bfloat16"},
      {"dtype", [&](FolderMaker& m) { m.record(qkv)["dtype"] = "float32", m.record(qkv)["format"] = "raw"; },
       "needs uint32 for q4f16_1, float32 there"},
      {"huge", [&](FolderMaker& m) { m.record(qkv)["shape"] = {1ULL << 40, 1ULL << 40}; }, "at most 281474976710656"},
      {"huge", [&](FolderMaker& m) { m.record(qkv)["byteOffset"] = Json::parse("1e400", nullptr, false); }, "not JSON"},
      {"negative", [&](FolderMaker& m) { m.record(qkv)["byteOffset"] = -8; }, "needs 0 to 281474976710656, -8 there"},
      {"type", [&](FolderMaker& m) { m.record(qkv)["byteOffset"] = "0"; }, "needs integer, string there"},
      {"missing", [&](FolderMaker& m) { m.record(qkv)["name"] = "other"; }, "qkv_proj.q_weight needed for q4f16_1"},
      {"pair", [&](FolderMaker& m) { m.record("lm_head.q_scale")["name"] = "lm_head.q_zeros"; },
       "lm_head.q_scale needed for q4f16_1"},
      {"repeat", [&](FolderMaker& m) { m.record(qkv)["name"] = "lm_head.q_weight"; }, "repeats the name"},
      {"path", [](FolderMaker& m) { m.shard(0)["dataPath"] = "../params_shard_0.bin"; }, "needs the name of a file"},
      {"path", [](FolderMaker& m) { m.shard(0)["dataPath"] = "/etc/passwd"; }, "needs the name of a file"},
      {"path", [](FolderMaker& m) { m.shard(0)["dataPath"] = "params_shard_1.bin"; }, "is an earlier shard too"},
      {"md5", [](FolderMaker& m) { m.shard(0)["md5sum"] = "12"; }, "needs 32 hexadecimal digits, \"12\" there"},
      {"list", [](FolderMaker& m) { m.index["records"] = 3; }, "needs array, number 3 there"},
      {"more", [](FolderMaker& m) { m.config["model_config"]["tie_word_embeddings"] = true; },
       "\"lm_head.q_weight\" is no parameter of llama"},
      {"layers", [&](FolderMaker& m) { model(m)["num_hidden_layers"] = 2; },
       "model.layers.1.input_layernorm.weight needed"},
      {"layers", [&](FolderMaker& m) { model(m)["num_hidden_layers"] = 1e9; }, "needs integer"},
      {"layers", [&](FolderMaker& m) { model(m)["num_hidden_layers"] = 1000000000; },
       "needs 1 to 1024, 1000000000 there"},
      {"heads", [&](FolderMaker& m) { model(m)["num_key_value_heads"] = 3; },
       "needs a divisor of the 2 heads, 3 there"},
      {"hidden", [&](FolderMaker& m) { model(m).erase("hidden_size"); },
       "\"hidden_size\": needed (integer), not there"},
      {"family", [](FolderMaker& m) { m.config["model_type"] = "gpt_neox"; },
       "needs one of llama, mistral, phi3, phi3_v"},
      {"quantization", [](FolderMaker& m) { m.config["quantization"] = "q3f16_1"; }, "\"q3f16_1\" there"},
      {"quantization", [](FolderMaker& m) { m.config["quantization"] = "q0f16"; },
       "embed_tokens.weight needed for q0f16"},
      {"rope", [&](FolderMaker& m) { model(m)["rope_scaling"] = {{"rope_type", "yarn"}}; },
       "\"yarn\" is not supported"},
      {"vocab", [&](FolderMaker& m) { model(m)["vocab_size"] = 4; },
       "token \"<end>\" has the id 4, the model has 4 rows"},
      {"vocab", [](FolderMaker& m) { m.tokenizer["model"]["vocab"]["z"] = 2; }, "id 2 is \"ab\" and \"z\""},
      {"vocab", [](FolderMaker& m) { m.tokenizer["model"]["vocab"]["z"] = 1ULL << 60; }, "needs an id below 6"},
      {"merges", [](FolderMaker& m) { m.tokenizer["model"]["merges"][0] = "ab"; }, "needs two texts, string there"},
      {"merges", [](FolderMaker& m) { m.tokenizer["model"].erase("merges"); }, "\"merges\": needed (array), not there"},
      {"model", [](FolderMaker& m) { m.tokenizer["model"]["type"] = "Unigram"; }, "needs \"BPE\", \"Unigram\" there"},
      {"pre", [](FolderMaker& m) { m.tokenizer["pre_tokenizer"] = {{"type", "Whitespace"}}; }, "\"Whitespace\" is not"},
      {"normalizer", [](FolderMaker& m) { m.tokenizer["normalizer"] = {{"type", "NFC"}}; },
       "needs none for byte-level"},
      {"eos", [](FolderMaker& m) { m.tokenizer_config["eos_token"] = "<none>"; }, "\"<none>\" is no token"},
      {"eos", [](FolderMaker& m) { m.config["eos_token_id"] = 77; }, "eos_token_id 77, the model has 6 rows"},
  };
  FolderMaker whole;
  whole.write(folder_);
  ASSERT_TRUE(Weights::open(folder_));
  for (const Damage& row : rows) {
    SCOPED_TRACE(row.name);
    FolderMaker maker;
    row.apply(maker);
    EXPECT_THAT(error_of(maker).message, AllOf(HasSubstr("[mlc] " + folder_), HasSubstr(row.message)));
  }
}

TEST_F(MlcReader, WhatIsNotThere) {
  EXPECT_EQ(read_folder(folder_).error().code, StatusCode::kNotFound);
  FolderMaker().write(folder_);
  std::filesystem::remove(folder_ + "/ndarray-cache.json");
  EXPECT_THAT(Weights::open(folder_).error().message,
              HasSubstr("needs ndarray-cache.json or tensor-cache.json, neither there"));
  std::filesystem::remove(folder_ + "/tokenizer.json");
  EXPECT_THAT(Weights::open(folder_).error().message, HasSubstr("tokenizer.json"));
}

TEST_F(MlcReader, HostileJson) {
  FolderMaker maker;
  maker.write(folder_);
  for (const std::string& text : {std::string(200000, '['), std::string("{\"records\":"), std::string("\xff\xfe"),
                                  std::string(100, '{'), std::string()}) {
    std::ofstream(folder_ + "/ndarray-cache.json", std::ios::binary) << text;
    EXPECT_EQ(Weights::open(folder_).error().code, StatusCode::kCorrupt);
  }
}

TEST_F(MlcReader, UnquantizedFolders) {
  for (const char* quantization : {"q0f16", "q0f32"}) {
    FolderMaker maker;
    maker.config["quantization"] = quantization;
    const bool f16 = quantization == std::string("q0f16");
    // One matrix of the right form and size is made of each pair; the index says it all.
    Json index;
    index["records"] = Json::array();
    std::map<std::string, std::vector<std::uint8_t>> shards;
    std::vector<std::uint8_t> bytes;
    Json records = Json::array();
    for (const Json& shard : maker.index["records"])
      for (const Json& record : shard["records"]) {
        std::string name = record["name"];
        if (name.ends_with(".q_scale")) continue;
        std::vector<std::uint64_t> shape = record["shape"];
        if (name.ends_with(".q_weight")) {
          name.replace(name.size() - 8, 8, "weight");
          shape[1] *= 8;
        }
        const std::size_t n = (shape.size() == 2 ? shape[0] * shape[1] : shape[0]);
        // float32 is stored as bf16 by the format f32-to-bf16, as it is by raw: norms take the one, matrices the other.
        const bool raw = shape.size() == 2;
        const std::size_t size = n * (f16 || !raw ? 2 : 4);
        records.push_back({{"name", name},
                           {"shape", shape},
                           {"dtype", f16 ? "float16" : "float32"},
                           {"format", raw ? "raw" : "f32-to-bf16"},
                           {"nbytes", size},
                           {"byteOffset", bytes.size()}});
        for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 61));
      }
    index["records"].push_back({{"dataPath", "one.bin"}, {"nbytes", bytes.size()}, {"records", records}});
    maker.index = index;
    maker.shards = {{"one.bin", bytes}};
    maker.write(folder_);
    const auto weights = Weights::open(folder_);
    ASSERT_TRUE(weights) << weights.error().message;
    const Tensor& v = *weights->find("blk.0.attn_v.weight");
    EXPECT_EQ(v.dtype, f16 ? DType::kF16 : DType::kF32);
    EXPECT_EQ(weights->find("blk.0.attn_norm.weight")->dtype, DType::kF32);
    const Tensor& q = *weights->find("blk.0.attn_q.weight");
    const std::size_t row = 32 * (f16 ? 2 : 4);  // bytes
    EXPECT_EQ(q.data[row], static_cast<std::byte>(8 * row % 61)) << "row 1 of GGUF is row 8 of MLC";
  }
}

}  // namespace
}  // namespace zinc_rt::mlc
