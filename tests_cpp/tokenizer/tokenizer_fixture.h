// Vocabularies for the tokenizer's tests: files where there are any, small ones made here.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/gguf/metadata.h"
#include "model/gguf/reader.h"
#include "tests_cpp/base/fixtures.h"
#include "tokenizer/tokenizer.h"

namespace zinc_rt {

inline std::filesystem::path demo_model() {
  if (const char* path = std::getenv("ZRT_DEMO_MODEL")) return path;
  return std::filesystem::path(ZRT_SOURCE_DIR) / ".cache" / "zinc_rt" / "smollm2-135m-instruct.gguf";
}

inline Result<Tokenizer> open_tokenizer(const std::filesystem::path& path) {
  auto file = gguf::GgufFile::open(path.string());
  if (!file) return std::unexpected(file.error());
  return Tokenizer::from_metadata(file->metadata());
}

inline std::vector<std::int32_t> ids_of(const Tokenizer& tokenizer, std::string_view text, bool add_special = false,
                                        bool parse_special = false) {
  auto ids = tokenizer.encode(text, add_special, parse_special);
  if (!ids) ADD_FAILURE() << ids.error().message;
  return ids.value_or(std::vector<std::int32_t>());
}

inline std::string text_of(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                           bool skip_special = false) {
  auto text = tokenizer.decode(ids, skip_special);
  if (!text) ADD_FAILURE() << text.error().message;
  return text.value_or(std::string());
}

}  // namespace zinc_rt
