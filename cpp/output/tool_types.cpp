#include "output/tool_types.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_number.h"
#include "base/json_text.h"
#include "base/strict_json.h"

namespace zinc_rt::output {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxUnions = 8;  // most nested unions that are followed

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::uint8_t bit_of(const Json& name) {
  static constexpr std::pair<const char*, std::uint8_t> kNames[] = {
      {"string", 1}, {"integer", 2}, {"number", 4}, {"boolean", 8}, {"null", 16}, {"object", 32}, {"array", 64}};
  for (const auto& [text, bit] : kNames)
    if (name == text) return bit;
  return 0;
}

std::uint8_t bit_of_value(const Json& value) {
  return value.is_string()       ? 1
         : is_json_number(value) ? is_written_whole(number_text(value)) ? 2 : 4
         : value.is_boolean()    ? 8
         : value.is_null()       ? 16
         : value.is_object()     ? 32
                                 : 64;
}

constexpr std::uint8_t kAll = 127;  // all types; the schema does not restrict the type

// Returns the types that both allow. An integer counts as a number.
std::uint8_t common(std::uint8_t a, std::uint8_t b) {
  std::uint8_t bits = a & b;
  if (((a & ToolTypes::kNumber) != 0 && (b & ToolTypes::kInteger) != 0) ||
      ((b & ToolTypes::kNumber) != 0 && (a & ToolTypes::kInteger) != 0))
    bits |= ToolTypes::kInteger;
  if (a == kAll || b == kAll) bits = a & b;
  return bits == 0 ? kAll : bits;
}

// Returns the part of the root to which a reference such as "#/$defs/a" refers. Returns null if the root has no such
// part.
const Json* part_of(const Json& root, std::string_view reference) {
  if (!reference.starts_with('#')) return nullptr;
  const Json* at = &root;
  for (std::string_view rest = reference.substr(1); !rest.empty();) {
    if (rest[0] != '/' || !at->is_object()) return nullptr;
    const auto end = std::min(rest.find('/', 1), rest.size());
    std::string name(rest.substr(1, end - 1));
    for (const auto& [escape, letter] : {std::pair("~1", "/"), std::pair("~0", "~")})
      for (auto i = name.find(escape); i != std::string::npos; i = name.find(escape, i + 1)) name.replace(i, 2, letter);
    const auto found = at->find(name);
    if (found == at->end()) return nullptr;
    at = &*found;
    rest.remove_prefix(end);
  }
  return at;
}

std::uint8_t bits_of(const Json& schema, const Json& root, int depth) {
  if (!schema.is_object() || depth > kMaxUnions) return kAll;
  const auto any_of = [](const Json& list, const auto& bits) {
    std::uint8_t all = 0;
    if (list.is_array())
      for (const auto& one : list) all |= bits(one);
    return all == 0 ? kAll : all;
  };
  const auto inner = [&](const Json& part) { return bits_of(part, root, depth + 1); };
  std::uint8_t bits = kAll;
  for (const auto& [keyword, value] : schema.items()) {
    if (keyword == "type")
      bits = common(bits, value.is_array() ? any_of(value, bit_of) : any_of(Json::array({value}), bit_of));
    else if (keyword == "anyOf" || keyword == "oneOf")
      bits = common(bits, any_of(value, inner));
    else if (keyword == "allOf" && value.is_array())
      for (const auto& one : value) bits = common(bits, inner(one));
    else if (keyword == "$ref" && value.is_string())
      if (const Json* part = part_of(root, value.get_ref<const std::string&>())) bits = common(bits, inner(*part));
  }
  if (const auto values = schema.find("enum"); values != schema.end())
    bits = common(bits, any_of(*values, bit_of_value));
  if (const auto value = schema.find("const"); value != schema.end()) bits = common(bits, bit_of_value(*value));
  if (const auto nullable = schema.find("nullable"); nullable != schema.end() && *nullable == true && bits != kAll)
    bits |= ToolTypes::kNull;
  return bits;
}

std::uint8_t said(std::uint8_t bits) {
  return bits == kAll ? 0 : bits;
}

}  // namespace

ToolTypes::ToolTypes(const Json& tools) {
  if (!tools.is_array()) return;
  for (const auto& tool : tools) {
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) continue;
    const Json& function = tool["function"];
    if (!function.contains("name") || !function["name"].is_string()) continue;
    auto& tool_types = tools_[function["name"].get<std::string>()];
    const auto schema = function.find("parameters");
    if (schema == function.end() || !schema->is_object()) continue;
    if (const auto properties = schema->find("properties"); properties != schema->end() && properties->is_object())
      for (const auto& [name, property] : properties->items())
        tool_types.parameters[name] = said(bits_of(property, *schema, 0));
    if (const auto others = schema->find("additionalProperties"); others != schema->end())
      if (!schema->contains("patternProperties")) tool_types.others = said(bits_of(*others, *schema, 0));
  }
}

std::uint8_t ToolTypes::types_of(std::string_view tool, std::optional<std::string_view> parameter) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return 0;
  const auto& [parameters, others] = found->second;
  const auto type = parameter ? parameters.find(*parameter) : parameters.end();
  return type == parameters.end() ? others : type->second;
}

bool ToolTypes::is_text(std::string_view tool, std::string_view parameter) const {
  return types_of(tool, parameter) == kText;
}

std::optional<std::string> ToolTypes::to_json(std::string_view tool, std::string_view parameter,
                                              std::string_view value) const {
  const auto types = types_of(tool, parameter);
  const auto word = trim(value);
  if (types == kText) return json_string(value);
  if (word.empty()) return (types & kText) != 0 || types == 0 ? std::optional(json_string(value)) : std::nullopt;
  const auto is = [&](Type type) { return types == 0 || (types & type) != 0; };
  const auto small = lower(word);
  // Templates write Python's words (None, True, False) for values that are not text, so both spellings are accepted.
  if (is(kNull) && (small == "null" || small == "none")) return "null";
  if (is(kBoolean) && (small == "true" || small == "false")) return small;
  const auto json = read_any_json(word);
  if (json && is_json_number(*json)) {
    const double number = number_value(*json);
    const bool is_integer = is_written_whole(word), is_whole = is_integer || number == std::trunc(number);
    // JSON Schema treats 5.0 as the integer 5.
    if ((types & kInteger) != 0 && is_whole)
      return !is_integer && std::abs(number) <= 0x1p53 ? std::to_string(static_cast<std::int64_t>(number))
                                                       : std::string(word);
    if (is(kNumber)) return std::string(word);
  }
  if (json && ((json->is_object() && is(kObject)) || (json->is_array() && is(kArray)))) return std::string(word);
  return json_string(value);
}

}  // namespace zinc_rt::output
