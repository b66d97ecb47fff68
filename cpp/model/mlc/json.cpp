#include "model/mlc/json.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/mapped_file.h"
#include "model/gguf/metadata.h"

namespace zinc_rt::mlc {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{512} << 20;

// Returns how deeply brackets are nested, ignoring those inside strings. The result is exact for every text that is
// valid JSON. It is computed before parsing, so that a deep text cannot exhaust the parser's stack.
int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view place) {
  if (const int depth = depth_of(text); depth > kMaxDepth)
    return fail(StatusCode::kCorrupt, "[mlc] {}: nested {} deep, at most {} allowed", place, depth, kMaxDepth);
  Json value = Json::parse(text.begin(), text.end(), nullptr, false);
  if (value.is_discarded())
    return fail(StatusCode::kCorrupt, "[mlc] {}: not JSON ({} bytes there; cut short?)", place, text.size());
  return value;
}

Result<std::string> read_text(const std::string& path) {
  ZRT_TRY(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > kMaxFileBytes)
    return fail(StatusCode::kCorrupt, "[mlc] {}: {} bytes there, at most {} allowed", path, file.bytes().size(),
                kMaxFileBytes);
  std::string text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  ZRT_CHECK_OK(file.is_whole());
  return text;
}

std::string describe(const Json& value) {
  if (value.is_number()) return "number " + value.dump();
  if (value.is_array() || value.is_object()) return fmt::format("{} of {}", value.type_name(), value.size());
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  return value.type_name();
}

Result<Fields> Fields::of(const Json& value, std::string place) {
  if (!value.is_object())
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs an object, {} there", place, describe(value));
  return Fields(&value, std::move(place));
}

std::string Fields::at(std::string_view key) const {
  return fmt::format("{}: key {}", place_, gguf::quoted(key));
}

const Json* Fields::find(std::string_view key) const {
  const auto it = object_->find(key);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

Result<const Json*> Fields::need(std::string_view key, std::string_view wanted) const {
  const Json* value = find(key);
  if (value == nullptr) return fail(StatusCode::kNotFound, "[mlc] {}: needed ({}), not there", at(key), wanted);
  const bool fits = wanted == "integer"  ? value->is_number_integer()
                    : wanted == "number" ? value->is_number()
                    : wanted == "string" ? value->is_string()
                    : wanted == "bool"   ? value->is_boolean()
                    : wanted == "array"  ? value->is_array()
                                         : value->is_object();
  if (!fits) return fail(StatusCode::kCorrupt, "[mlc] {}: needs {}, {} there", at(key), wanted, describe(*value));
  return value;
}

Result<std::uint64_t> Fields::count(std::string_view key, std::uint64_t least, std::uint64_t most) const {
  ZRT_TRY(const Json* value, need(key, "integer"));
  const bool negative = !value->is_number_unsigned() && value->get<std::int64_t>() < 0;
  if (negative || value->get<std::uint64_t>() < least || value->get<std::uint64_t>() > most)
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs {} to {}, {} there", at(key), least, most, value->dump());
  return value->get<std::uint64_t>();
}

Result<std::uint64_t> Fields::count_or(std::string_view key, std::uint64_t least, std::uint64_t most,
                                       std::uint64_t fallback) const {
  return contains(key) ? count(key, least, most) : Result<std::uint64_t>(fallback);
}

Result<double> Fields::number_or(std::string_view key, double least, double most, double fallback) const {
  if (!contains(key)) return fallback;
  ZRT_TRY(const Json* value, need(key, "number"));
  const double number = value->get<double>();
  if (!(number >= least && number <= most))
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs {} to {}, {} there", at(key), least, most, value->dump());
  return number;
}

Result<bool> Fields::flag_or(std::string_view key, bool fallback) const {
  if (!contains(key)) return fallback;
  ZRT_TRY(const Json* value, need(key, "bool"));
  return value->get<bool>();
}

Result<std::string> Fields::string(std::string_view key) const {
  ZRT_TRY(const Json* value, need(key, "string"));
  return value->get<std::string>();
}

Result<std::string> Fields::string_or(std::string_view key, std::string_view fallback) const {
  return contains(key) ? string(key) : Result<std::string>(std::string(fallback));
}

Result<const Json*> Fields::array(std::string_view key) const {
  return need(key, "array");
}

Result<Fields> Fields::object(std::string_view key) const {
  ZRT_TRY(const Json* value, need(key, "object"));
  return Fields(value, fmt::format("{}: {}", place_, key));
}

}  // namespace zinc_rt::mlc
