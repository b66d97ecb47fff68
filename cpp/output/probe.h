// The conversations with which chat templates are tested.
// Thread rule: constants and pure functions.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace zinc_rt::output {

// Renders messages and tools, both JSON lists (tools may be empty), to text. Returns nothing if the template refuses
// them.
using Render = std::function<std::optional<std::string>(const std::string& messages, const std::string& tools)>;

inline constexpr std::string_view kProbeName = "zrt_probe_name";
inline constexpr std::string_view kProbeCallId = "zrtcall01";
inline constexpr const char* kProbeTools =
    R"([{"type":"function","function":{"name":"zrt_probe_name","description":"zrt probe","parameters":{"type":"object","properties":{"zrt_probe_key":{"type":"string","description":"k"}},"required":["zrt_probe_key"]}}}])";

// Arguments in an unusual spelling, and in Python's notation, to see what a template prints.
inline constexpr std::string_view kProbeText = R"({ "zrt_probe_key" :"zrt value"})";
inline constexpr std::string_view kProbeShown = "{'zrt_probe_key': 'zrt value'}";

// Returns a call of the tool. Its arguments are an object, or the JSON text of an object.
inline nlohmann::ordered_json probe_call(bool has_object) {
  nlohmann::ordered_json function{{"name", kProbeName}};
  if (has_object)
    function["arguments"] = {{"zrt_probe_key", "zrt value"}};
  else
    function["arguments"] = kProbeText;
  return {{"id", kProbeCallId}, {"type", "function"}, {"function", std::move(function)}};
}

}  // namespace zinc_rt::output
