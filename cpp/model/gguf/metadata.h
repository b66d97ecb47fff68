// Metadata holds the key-value section of a GGUF file. The config, the tokenizer and the chat templates read their keys
// from it.
// Thread rule: immutable once the file is open.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::gguf {

// ValueType lists the types of values in the GGUF format, with the numbers that the file stores for them.
enum class ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12
};
std::string_view to_string(ValueType type);

// Formats a name from an untrusted file for an error message. The name is put in quotes, bytes outside printable ASCII
// are shown as \xNN, and it is cut after 80 bytes.
std::string quoted(std::string_view name);

// Holds the value of one key: a scalar, or an array of scalars of one type. Integers of any width are stored as i64
// (u64 as u64), floats as double. `type` is the type in the file.
struct Value {
  ValueType type = ValueType::kU8;  // if is_array, the type of the elements
  bool is_array = false;
  std::variant<std::int64_t, std::uint64_t, double, bool, std::string,                      // types of a scalar
               std::vector<std::int64_t>, std::vector<std::uint64_t>, std::vector<double>,  // types of an array
               std::vector<std::uint8_t> /* bool array */, std::vector<std::string>>
      data;

  std::string type_name() const;  // the type's name for messages: "u32", "array of string"
};

class Metadata {
 public:
  const Value* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // Each get_*() returns the value of a key as one C++ type. Any integer type converts to another if the value fits;
  // f32 and f64 convert too. Errors: kNotFound if the key is absent; kCorrupt, with the key and both types, if the
  // value has another type or does not fit.
  Result<std::int64_t> get_int(std::string_view key) const;
  Result<double> get_float(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;
  Result<std::span<const std::string>> get_strings(std::string_view key) const;
  Result<std::vector<std::int64_t>> get_ints(std::string_view key) const;  // also reads an array of bool, as 0 and 1
  Result<std::vector<double>> get_floats(std::string_view key) const;

  // Each get_*_or() returns the same as the function without _or, but returns `fallback` if the key is absent. A key of
  // another type is still an error.
  Result<std::int64_t> get_int_or(std::string_view key, std::int64_t fallback) const;
  Result<double> get_float_or(std::string_view key, double fallback) const;
  Result<bool> get_bool_or(std::string_view key, bool fallback) const;
  Result<std::string_view> get_string_or(std::string_view key, std::string_view fallback) const;

  // Returns all keys and values, in the order of the file.
  std::span<const std::pair<std::string, Value>> entries() const { return entries_; }

  // Adds a key. Errors: kCorrupt if the metadata already has this key.
  Status add(std::string key, Value value);

  // Says where this metadata came from, for error messages: a file name, or empty if unknown.
  const std::string& place() const { return place_; }
  void set_place(std::string place) { place_ = std::move(place); }

 private:
  // Lets find() look up a string_view without making a string of it.
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  Result<const Value*> need(std::string_view key, std::string_view wanted, bool array) const;
  std::string at(std::string_view key) const;  // `file: key "name"`, with which every message begins

  std::string place_;
  std::vector<std::pair<std::string, Value>> entries_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;
};

}  // namespace zinc_rt::gguf
