#include "output/tool_types.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace zinc_rt::output {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxUnions = 8;  // how deep unions of unions are followed

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
  return value.is_string()           ? 1
         : value.is_number_integer() ? 2
         : value.is_number()         ? 4
         : value.is_boolean()        ? 8
         : value.is_null()           ? 16
         : value.is_object()         ? 32
                                     : 64;
}

std::uint8_t bits_of(const Json& schema, int depth) {
  if (!schema.is_object() || depth > kMaxUnions) return 0;
  std::uint8_t bits = 0;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_array())
      for (const auto& one : *type) bits |= bit_of(one);
    else
      bits |= bit_of(*type);
  }
  for (const char* name : {"anyOf", "oneOf", "allOf"})
    if (const auto list = schema.find(name); list != schema.end() && list->is_array())
      for (const auto& one : *list) bits |= bits_of(one, depth + 1);
  if (bits == 0) {
    if (const auto values = schema.find("enum"); values != schema.end() && values->is_array())
      for (const auto& one : *values) bits |= bit_of_value(one);
    if (const auto value = schema.find("const"); value != schema.end()) bits |= bit_of_value(*value);
  }
  if (const auto nullable = schema.find("nullable"); nullable != schema.end() && *nullable == true && bits != 0)
    bits |= 16;
  return bits;
}

}  // namespace

ToolTypes::ToolTypes(std::string_view tools) {
  const auto list = Json::parse(tools, nullptr, false);
  if (!list.is_array()) return;
  for (const auto& tool : list) {
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) continue;
    const Json& function = tool["function"];
    if (!function.contains("name") || !function["name"].is_string()) continue;
    auto& parameters = tools_[function["name"].get<std::string>()];
    const auto schema = function.find("parameters");
    if (schema == function.end() || !schema->is_object() || !schema->contains("properties")) continue;
    const Json& properties = (*schema)["properties"];
    if (!properties.is_object()) continue;
    for (const auto& [name, property] : properties.items()) parameters[name] = bits_of(property, 0);
  }
}

std::uint8_t ToolTypes::types_of(std::string_view tool, std::string_view parameter) const {
  const auto found = tools_.find(tool);
  if (found == tools_.end()) return 0;
  const auto type = found->second.find(parameter);
  return type == found->second.end() ? 0 : type->second;
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
  // Templates write Python's words for what is no text.
  if (is(kNull) && (small == "null" || small == "none")) return "null";
  if (is(kBoolean) && (small == "true" || small == "false")) return small;
  const auto json = Json::parse(word, nullptr, false);
  if (json.is_number()) {
    const double number = json.get<double>();
    const bool is_whole = json.is_number_integer() || (std::isfinite(number) && number == std::trunc(number));
    // 5.0 is the integer 5.
    if ((types & kInteger) != 0 && is_whole)
      return json.is_number_integer()     ? std::string(word)
             : std::abs(number) <= 0x1p53 ? std::to_string(static_cast<std::int64_t>(number))
                                          : std::string(word);
    if (is(kNumber)) return std::string(word);
  }
  if ((json.is_object() && is(kObject)) || (json.is_array() && is(kArray))) return std::string(word);
  return json_string(value);
}

}  // namespace zinc_rt::output
