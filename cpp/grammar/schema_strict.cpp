// Checks the requirements on a schema that OpenAI's strict mode adds.
#include <algorithm>

#include "grammar/grammar.h"
#include "grammar/json_reader.h"

namespace zinc_rt::grammar {
namespace {

constexpr std::size_t kMaxProperties = 5'000;
constexpr std::size_t kMaxLevels = 10;
constexpr std::size_t kMaxEnumValues = 1'000;
constexpr std::size_t kMaxCharacters = 120'000;

class StrictCheck {
 public:
  Status schema(const Json& at, const std::string& pointer, std::size_t level) {
    if (!at.is_object()) return refuse(pointer, "a schema is an object in strict mode");
    const auto type = at.find("type");
    const bool is_object = at.contains("properties") || (type != at.end() && names(*type, "object"));
    if (is_object) ZRT_CHECK_OK(object(at, pointer, level + 1));
    if (const auto values = at.find("enum"); values != at.end() && values->is_array()) {
      n_values_ += values->size();
      for (const Json& value : *values) n_characters_ += length(value);
      if (n_values_ > kMaxEnumValues) return above(pointer + "/enum", "values of enums", n_values_, kMaxEnumValues);
    }
    if (const auto value = at.find("const"); value != at.end()) n_characters_ += length(*value);
    for (const char* keyword : {"anyOf", "allOf", "oneOf", "prefixItems"}) {
      const auto list = at.find(keyword);
      if (list == at.end() || !list->is_array()) continue;
      for (std::size_t i = 0; i < list->size(); ++i)
        ZRT_CHECK_OK(schema((*list)[i], pointer + "/" + keyword + "/" + std::to_string(i), level));
    }
    if (const auto items = at.find("items"); items != at.end()) ZRT_CHECK_OK(schema(*items, pointer + "/items", level));
    for (const char* keyword : {"$defs", "definitions"}) {
      const auto list = at.find(keyword);
      if (list == at.end() || !list->is_object()) continue;
      for (const auto& [name, value] : list->get_ref<const Json::object_t&>()) {
        n_characters_ += name.size();
        ZRT_CHECK_OK(schema(value, pointer + "/" + keyword + "/" + name, level));
      }
    }
    if (n_characters_ > kMaxCharacters)
      return above(pointer, "characters of names and values", n_characters_, kMaxCharacters);
    return {};
  }

  static std::unexpected<Error> refuse(const std::string& pointer, std::string_view what) {
    return fail(StatusCode::kInvalidArgument, "[schema] {}: {}", pointer.empty() ? "the root" : pointer, what);
  }
  static bool names(const Json& type, const char* wanted) {
    return type == wanted || (type.is_array() && std::ranges::find(type, Json(wanted)) != type.end());
  }

 private:
  static std::unexpected<Error> above(const std::string& pointer, const char* what, std::size_t n, std::size_t most) {
    return fail(StatusCode::kInvalidArgument, "[schema] {}: {} {}, at most {} in strict mode",
                pointer.empty() ? "the root" : pointer, n, what, most);
  }
  static std::size_t length(const Json& value) {
    return value.is_string() ? value.get_ref<const std::string&>().size() : 0;
  }

  Status object(const Json& at, const std::string& pointer, std::size_t level) {
    if (level > kMaxLevels) return above(pointer, "levels of objects", level, kMaxLevels);
    const auto additional = at.find("additionalProperties");
    if (additional == at.end() || *additional != false)
      return refuse(pointer, "additionalProperties must be false in strict mode");
    const auto properties = at.find("properties");
    if (properties == at.end()) return {};
    if (!properties->is_object()) return refuse(pointer + "/properties", "an object is wanted");
    n_properties_ += properties->size();
    if (n_properties_ > kMaxProperties)
      return above(pointer + "/properties", "properties", n_properties_, kMaxProperties);
    std::vector<std::string_view> required;
    if (const auto list = at.find("required"); list != at.end() && list->is_array()) {
      for (const Json& name : *list)
        if (name.is_string()) required.push_back(name.get_ref<const std::string&>());
    }
    std::ranges::sort(required);
    for (const auto& [name, value] : properties->get_ref<const Json::object_t&>()) {
      n_characters_ += name.size();
      if (!std::ranges::binary_search(required, std::string_view(name)))
        return refuse(pointer + "/required",
                      "\"" + name.substr(0, 80) + "\" is missing; strict mode wants all properties");
      ZRT_CHECK_OK(schema(value, pointer + "/properties/" + name, level));
    }
    return {};
  }

  std::size_t n_properties_ = 0, n_values_ = 0, n_characters_ = 0;
};

}  // namespace

Status check_strict(std::string_view text) {
  ZRT_TRY(const Json root, read_json(text, Limits()));
  const auto type = root.is_object() ? root.find("type") : root.end();
  if (!root.is_object() || type == root.end() || *type != "object")
    return StrictCheck::refuse("", "its type must be \"object\" in strict mode");
  return StrictCheck().schema(root, "", 0);
}

}  // namespace zinc_rt::grammar
