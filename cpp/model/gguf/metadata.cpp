#include "model/gguf/metadata.h"

#include <limits>
#include <utility>

#include "base/error.h"

namespace zinc_rt::gguf {
namespace {

constexpr std::size_t kMaxShownBytes = 80;

Result<std::int64_t> as_int(const Value& value, const std::string& at) {
  if (const auto* i = std::get_if<std::int64_t>(&value.data)) return *i;
  const std::uint64_t u = std::get<std::uint64_t>(value.data);
  if (u > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return fail(StatusCode::kCorrupt, "[gguf] {}: is {}, the largest that fits is {}", at, u,
                std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(u);
}

}  // namespace

std::string_view to_string(ValueType type) {
  switch (type) {
    case ValueType::kU8: return "u8";
    case ValueType::kI8: return "i8";
    case ValueType::kU16: return "u16";
    case ValueType::kI16: return "i16";
    case ValueType::kU32: return "u32";
    case ValueType::kI32: return "i32";
    case ValueType::kF32: return "f32";
    case ValueType::kBool: return "bool";
    case ValueType::kString: return "string";
    case ValueType::kArray: return "array";
    case ValueType::kU64: return "u64";
    case ValueType::kI64: return "i64";
    case ValueType::kF64: return "f64";
  }
  return "unknown";
}

std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name.substr(0, kMaxShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  out += name.size() > kMaxShownBytes ? "...\"" : "\"";
  return out;
}

std::string Value::type_name() const {
  return is_array ? fmt::format("array of {}", to_string(type)) : std::string(to_string(type));
}

const Value* Metadata::find(std::string_view key) const {
  const auto it = index_.find(key);
  return it == index_.end() ? nullptr : &entries_[it->second].second;
}

std::string Metadata::at(std::string_view key) const {
  return place_.empty() ? fmt::format("key {}", quoted(key)) : fmt::format("{}: key {}", place_, quoted(key));
}

Status Metadata::add(std::string key, Value value) {
  const auto [it, is_new] = index_.try_emplace(key, entries_.size());
  if (!is_new)
    return fail(StatusCode::kCorrupt, "[gguf] {}: entry {} repeats entry {}", at(key), entries_.size(), it->second);
  entries_.emplace_back(std::move(key), std::move(value));
  return {};
}

// Returns the value of `key`. It must be an array if `array` is true, and a scalar if not. `wanted` names the type that
// the caller wants, for the error message.
Result<const Value*> Metadata::need(std::string_view key, std::string_view wanted, bool array) const {
  const Value* value = find(key);
  if (value == nullptr) return fail(StatusCode::kNotFound, "[gguf] {}: needed ({}), not there", at(key), wanted);
  std::string_view kind = "integer";
  if (value->type == ValueType::kString) kind = "string";
  if (value->type == ValueType::kBool) kind = "bool";
  if (value->type == ValueType::kF32 || value->type == ValueType::kF64) kind = "float";
  const std::string_view wanted_kind = array ? wanted.substr(std::string_view("array of ").size()) : wanted;
  const bool bools_as_ints = array && kind == "bool" && wanted_kind == "integer";
  if (value->is_array != array || (kind != wanted_kind && !bools_as_ints))
    return fail(StatusCode::kCorrupt, "[gguf] {}: needs {}, {} there", at(key), wanted, value->type_name());
  return value;
}

Result<std::int64_t> Metadata::get_int(std::string_view key) const {
  ZRT_TRY(const Value* value, need(key, "integer", false));
  return as_int(*value, at(key));
}

Result<double> Metadata::get_float(std::string_view key) const {
  ZRT_TRY(const Value* value, need(key, "float", false));
  return std::get<double>(value->data);
}

Result<bool> Metadata::get_bool(std::string_view key) const {
  ZRT_TRY(const Value* value, need(key, "bool", false));
  return std::get<bool>(value->data);
}

Result<std::string_view> Metadata::get_string(std::string_view key) const {
  ZRT_TRY(const Value* value, need(key, "string", false));
  return std::string_view(std::get<std::string>(value->data));
}

Result<std::span<const std::string>> Metadata::get_strings(std::string_view key) const {
  ZRT_TRY(const Value* value, need(key, "array of string", true));
  return std::span<const std::string>(std::get<std::vector<std::string>>(value->data));
}

Result<std::vector<std::int64_t>> Metadata::get_ints(std::string_view key) const {
  ZRT_TRY(const Value* value, need(key, "array of integer", true));
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value->data)) return *ints;
  if (const auto* bools = std::get_if<std::vector<std::uint8_t>>(&value->data))
    return std::vector<std::int64_t>(bools->begin(), bools->end());
  std::vector<std::int64_t> out;
  const auto& wide = std::get<std::vector<std::uint64_t>>(value->data);
  out.reserve(wide.size());
  for (const std::uint64_t u : wide) {
    Value one;
    one.data = u;
    ZRT_TRY(const std::int64_t i, as_int(one, at(key)));
    out.push_back(i);
  }
  return out;
}

Result<std::vector<double>> Metadata::get_floats(std::string_view key) const {
  ZRT_TRY(const Value* value, need(key, "array of float", true));
  return std::get<std::vector<double>>(value->data);
}

Result<std::int64_t> Metadata::get_int_or(std::string_view key, std::int64_t fallback) const {
  return contains(key) ? get_int(key) : Result<std::int64_t>(fallback);
}

Result<double> Metadata::get_float_or(std::string_view key, double fallback) const {
  return contains(key) ? get_float(key) : Result<double>(fallback);
}

Result<bool> Metadata::get_bool_or(std::string_view key, bool fallback) const {
  return contains(key) ? get_bool(key) : Result<bool>(fallback);
}

Result<std::string_view> Metadata::get_string_or(std::string_view key, std::string_view fallback) const {
  return contains(key) ? get_string(key) : Result<std::string_view>(fallback);
}

}  // namespace zinc_rt::gguf
