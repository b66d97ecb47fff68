// ToolTypes holds the parameter types of a request's tools. Readers need them to make JSON from values that models
// write without quotes.
// Thread rule: const functions from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt::output {

class ToolTypes {
 public:
  ToolTypes() = default;
  // Reads the types from `tools`, a list as in the API. Anything else counts as no tools.
  explicit ToolTypes(const nlohmann::ordered_json& tools);
  // Deleted because a text would be converted to a JSON string, which has no tools.
  explicit ToolTypes(std::string_view) = delete;

  bool has(std::string_view name) const { return tools_.contains(name); }
  // Returns whether the name of a tool begins with this text.
  bool has_beginning(std::string_view text) const {
    const auto first = tools_.lower_bound(text);
    return first != tools_.end() && first->first.starts_with(text);
  }
  // Returns whether values of this parameter can only be texts.
  bool is_text(std::string_view tool, std::string_view parameter) const;
  enum Type : std::uint8_t {
    kText = 1,
    kInteger = 2,
    kNumber = 4,
    kBoolean = 8,
    kNull = 16,
    kObject = 32,
    kArray = 64
  };
  // Returns the types that a parameter's values may have, as bits of Type. Returns 0 if the schema states no type. If
  // `parameter` is nullopt, returns the types of parameters that the schema does not name.
  std::uint8_t types_of(std::string_view tool, std::optional<std::string_view> parameter) const;
  // Returns the JSON of a value that is written as plain text. Its type is the first of the parameter's types that the
  // text fits, or else text. If the parameter has no types, the text is parsed as JSON; if parsing fails, the value is
  // a text. Returns nullopt for an empty value of a parameter that allows no text; the caller then omits the parameter.
  std::optional<std::string> to_json(std::string_view tool, std::string_view parameter, std::string_view value) const;

 private:
  struct Tool {
    std::map<std::string, std::uint8_t, std::less<>> parameters;
    std::uint8_t others = 0;  // types of the parameters that the schema does not name
  };
  std::map<std::string, Tool, std::less<>> tools_;
};

}  // namespace zinc_rt::output
