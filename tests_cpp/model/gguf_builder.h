// Writes GGUF files in memory, right ones and, with the overrides, wrong ones.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/metadata.h"

namespace zinc_rt::gguf {

class GgufBuilder {
 public:
  std::uint32_t magic = 0x46554747;
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;             // of the data; written as a key only by add_u32
  std::optional<std::uint64_t> n_keys;      // what the header says instead of the truth
  std::optional<std::uint64_t> n_tensors;   // the same
  std::optional<std::uint64_t> data_bytes;  // the same for the length of the data section
  std::size_t header_bytes = 0;             // set by build(): where the padding before the data begins

  // Any scalar: the value's C++ type must be the type that `type` names.
  template <class T>
  GgufBuilder& add(std::string_view key, ValueType type, T value) {
    begin_key(key, type);
    put(keys_, value);
    return *this;
  }
  GgufBuilder& add_u32(std::string_view key, std::uint32_t value) { return add(key, ValueType::kU32, value); }
  GgufBuilder& add_f32(std::string_view key, float value) { return add(key, ValueType::kF32, value); }
  GgufBuilder& add_string(std::string_view key, std::string_view value) {
    begin_key(key, ValueType::kString);
    put_string(keys_, value);
    return *this;
  }
  template <class T>
  GgufBuilder& add_array(std::string_view key, ValueType type, const std::vector<T>& values) {
    begin_array(key, type, values.size());
    for (const T& value : values) {
      if constexpr (std::same_as<T, std::string>) {
        put_string(keys_, value);
      } else {
        put(keys_, value);
      }
    }
    return *this;
  }
  // An array whose elements are left to add_raw.
  GgufBuilder& begin_array(std::string_view key, ValueType type, std::uint64_t count) {
    begin_key(key, ValueType::kArray);
    put(keys_, static_cast<std::uint32_t>(type));
    put(keys_, count);
    return *this;
  }
  GgufBuilder& begin_key(std::string_view key, ValueType type) {
    ++true_keys_;
    put_string(keys_, key);
    put(keys_, static_cast<std::uint32_t>(type));
    return *this;
  }
  template <class T>
  GgufBuilder& add_raw(T value) {
    put(keys_, value);
    return *this;
  }

  // A tensor placed after the one before it, or at `offset`.
  GgufBuilder& add_tensor(std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dims,
                          std::uint64_t n_bytes, std::optional<std::uint64_t> offset = {}) {
    ++true_tensors_;
    put_string(tensors_, name);
    put(tensors_, static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) put(tensors_, dim);
    put(tensors_, type);
    const std::uint64_t at = offset.value_or(end_);
    put(tensors_, at);
    end_ = (at + n_bytes + alignment - 1) / alignment * alignment;
    true_data_bytes_ = at + n_bytes;
    return *this;
  }

  std::vector<std::byte> build() {
    std::vector<std::byte> out;
    put(out, magic);
    put(out, version);
    put(out, n_tensors.value_or(true_tensors_));
    put(out, n_keys.value_or(true_keys_));
    out.insert(out.end(), keys_.begin(), keys_.end());
    out.insert(out.end(), tensors_.begin(), tensors_.end());
    header_bytes = out.size();
    if (true_tensors_ == 0) return out;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    const std::size_t first = out.size();
    out.resize(first + data_bytes.value_or(true_data_bytes_));
    for (std::size_t i = first; i < out.size(); ++i) out[i] = static_cast<std::byte>(i - first);
    return out;
  }

 private:
  template <class T>
  static void put(std::vector<std::byte>& out, T value) {
    const std::size_t at = out.size();
    out.resize(at + sizeof(T));
    std::memcpy(out.data() + at, &value, sizeof(T));
  }
  static void put_string(std::vector<std::byte>& out, std::string_view text) {
    put(out, std::uint64_t{text.size()});
    for (const char c : text) out.push_back(static_cast<std::byte>(c));
  }

  std::vector<std::byte> keys_;
  std::vector<std::byte> tensors_;
  std::uint64_t true_keys_ = 0;
  std::uint64_t true_tensors_ = 0;
  std::uint64_t true_data_bytes_ = 0;
  std::uint64_t end_ = 0;
};

// The keys of a small model that read_config accepts; `skip` is left out, so that a test can say it otherwise.
inline GgufBuilder tiny_model(std::string_view skip = "") {
  GgufBuilder builder;
  const auto count = [&](std::string_view key, std::uint32_t value) {
    if (key != skip) builder.add_u32(key, value);
  };
  if (skip != "general.architecture") builder.add_string("general.architecture", "tiny");
  count("tiny.block_count", 2);
  count("tiny.context_length", 128);
  count("tiny.embedding_length", 64);
  count("tiny.feed_forward_length", 96);
  count("tiny.attention.head_count", 4);
  count("tiny.attention.head_count_kv", 2);
  if (skip != "tiny.attention.layer_norm_rms_epsilon") builder.add_f32("tiny.attention.layer_norm_rms_epsilon", 1e-5f);
  if (skip != "tokenizer.ggml.tokens")
    builder.add_array<std::string>("tokenizer.ggml.tokens", ValueType::kString, {"a", "b", "c", "d", ""});
  return builder;
}

inline void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace zinc_rt::gguf
