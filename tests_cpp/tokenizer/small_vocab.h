// Small vocabularies made in the test, as the metadata of a file would give them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/gguf/metadata.h"
#include "tokenizer/byte_alphabet.h"

namespace zinc_rt {

struct SmallVocab {
  std::vector<std::string> tokens;
  std::vector<double> scores;
  std::vector<std::int64_t> types;  // 1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte
  std::vector<std::string> merges;
  std::vector<std::pair<std::string, gguf::Value>> more;

  int add(std::string text, int type = 1, double score = 0) {
    tokens.push_back(std::move(text));
    types.push_back(type);
    scores.push_back(score);
    return static_cast<int>(tokens.size()) - 1;
  }
  // The token left + right and the merge that makes it.
  int add_merge(const std::string& left, const std::string& right) {
    merges.push_back(left + " " + right);
    return add(left + right);
  }
  void set(std::string key, std::string value) {
    more.emplace_back("tokenizer.ggml." + key, gguf::Value{gguf::ValueType::kString, false, std::move(value)});
  }
  void set(std::string key, std::int64_t value) {
    more.emplace_back("tokenizer.ggml." + key, gguf::Value{gguf::ValueType::kU32, false, value});
  }
  void set(std::string key, bool value) {
    more.emplace_back("tokenizer.ggml." + key, gguf::Value{gguf::ValueType::kBool, false, value});
  }

  gguf::Metadata metadata(std::string model) const {
    using gguf::Value;
    using gguf::ValueType;
    gguf::Metadata made;
    const auto put = [&](const char* key, Value value) {
      if (!made.add(std::string("tokenizer.ggml.") + key, std::move(value))) std::abort();
    };
    put("model", {ValueType::kString, false, std::move(model)});
    put("tokens", {ValueType::kString, true, tokens});
    if (!scores.empty()) put("scores", {ValueType::kF32, true, scores});
    if (!types.empty()) put("token_type", {ValueType::kI32, true, types});
    if (!merges.empty()) put("merges", {ValueType::kString, true, merges});
    for (const auto& [key, value] : more) {
      if (!made.add(key, value)) std::abort();
    }
    return made;
  }

  // All 256 bytes (ids 0..255), "he", "ll", "hell", "hello", " hello" and the control tokens <s> </s>.
  static SmallVocab byte_level() {
    SmallVocab v;
    for (int byte = 0; byte < 256; ++byte) v.add(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
    v.add_merge("h", "e");
    v.add_merge("l", "l");
    v.add_merge("he", "ll");
    v.add_merge("hell", "o");
    v.add_merge("\u0120", "hello");
    v.set("bos_token_id", std::int64_t{v.add("<s>", 3)});
    v.set("eos_token_id", std::int64_t{v.add("</s>", 3)});
    v.set("pre", std::string("gpt-2"));
    return v;
  }

  // <unk> <s> </s>, 256 byte tokens, and letters, words and marks with scores.
  static SmallVocab spm() {
    SmallVocab v;
    v.add("<unk>", 2);
    v.add("<s>", 3);
    v.add("</s>", 3);
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", byte);
      v.add(name, 6);
    }
    double score = 0;
    for (const char* piece : {"he", "ll", "hell", "hello", "\u2581hello", "\u2581\u2581", "\u2581w", "or", "\u2581wor",
                              "\u2581", "h", "e", "l", "o", "w", "r", "d", "\u00e9"})
      v.add(piece, 1, --score);
    return v;
  }
};

}  // namespace zinc_rt
