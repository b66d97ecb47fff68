// Any bytes as the JSON files of an MLC folder. The first byte says which: 'i' an index, 'c' a config, 't' a
// tokenizer.json and, after a zero byte, a tokenizer_config.json. Nothing may crash, and what is accepted keeps its
// promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "model/mlc/chat_config.h"
#include "model/mlc/index.h"
#include "model/mlc/metadata.h"
#include "model/mlc/params.h"
#include "model/mlc/tokenizer_export.h"
#include "model/mlc/tokenizer_import.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace zinc_rt;

void expect(bool holds) {
  if (!holds) std::abort();
}

void try_index(std::string_view text) {
  const auto index = mlc::parse_index(text, "fuzz.json");
  expect(index || !index.error().message.empty());
  if (!index) return;
  std::vector<std::pair<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>>> extents;
  for (const mlc::Record& record : index->records) {
    expect(record.shard < index->shards.size() && !record.shape.empty() && record.n_bytes > 0);
    expect(record.offset + record.n_bytes <= index->shards[record.shard].n_bytes);
    extents.push_back({record.shard, {record.offset, record.offset + record.n_bytes}});
  }
  std::ranges::sort(extents);
  for (std::size_t i = 1; i < extents.size(); ++i)
    expect(extents[i - 1].first != extents[i].first || extents[i - 1].second.second <= extents[i].second.first);
  for (const mlc::Shard& shard : index->shards)
    expect(shard.file.find('/') == std::string::npos && shard.file[0] != '.');
}

void try_config(std::string_view text) {
  const auto config = mlc::parse_chat_config(text, "fuzz.json");
  expect(config || !config.error().message.empty());
  if (!config) return;
  expect(config->n_heads % config->n_kv_heads == 0 && config->rope_dim % 2 == 0 && config->rope_dim >= 2);
  expect(config->rope_dim <= config->head_dim && config->context_length > 0 && config->vocab_size > 0);
  gguf::Metadata metadata;
  expect(mlc::add_model_keys(*config, "fuzz", metadata).has_value());
  for (const auto& [name, values] : mlc::rope_tensors(*config)) expect(values.size() == config->rope_dim / 2);
  if (config->n_layers > 16) return;
  for (const auto& param : mlc::params_of(*config, mlc::namings_of(config->architecture)[0]))
    expect(param.n_rows() > 0);
}

void try_tokenizer(std::string_view text) {
  const std::size_t zero = text.find('\0');
  const mlc::TokenizerFiles files{"fuzz", std::string(text.substr(0, zero)),
                                  zero == std::string_view::npos ? "" : std::string(text.substr(zero + 1))};
  mlc::ChatConfig config;
  config.vocab_size = 300;
  gguf::Metadata metadata;
  const auto status = mlc::add_tokenizer(files, config, metadata);
  expect(status || !status.error().message.empty());
  if (!status) return;
  expect(metadata.get_strings("tokenizer.ggml.tokens")->size() == config.vocab_size);
  const auto tokenizer = Tokenizer::from_metadata(metadata);
  if (!tokenizer) return;
  const auto ids = tokenizer->encode("Hello  world ab\n12", true, true);
  expect(ids.has_value());
  // What was read can be written and read again, to the same ids.
  const auto exported = mlc::export_tokenizer(metadata);
  if (!exported) return;
  gguf::Metadata again;
  expect(mlc::add_tokenizer({"fuzz", exported->tokenizer, exported->config}, config, again).has_value());
  const auto second = Tokenizer::from_metadata(again);
  expect(second.has_value());
  expect(second->encode("Hello  world ab\n12", true, true).value() == *ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'i') try_index(text);
  if (data[0] == 'c') try_config(text);
  if (data[0] == 't') try_tokenizer(text);
  return 0;
}
