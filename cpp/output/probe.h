// Defines the conversations that are rendered to find out what a chat template does.
// Thread rule: constants and pure functions.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace zinc_rt::output {

// Renders messages and tools, which are JSON lists (tools may be empty), to a prompt. Returns an error if the template
// refuses them; its code is kExhausted if the template passes a limit of a render.
using Render = std::function<Result<std::string>(const std::string& messages, const std::string& tools)>;

inline constexpr std::string_view kProbeName = "zrt_probe_name";
inline constexpr std::string_view kProbeCallId = "zrtcall01";
inline constexpr const char* kProbeTools =
    R"([{"type":"function","function":{"name":"zrt_probe_name","description":"zrt probe","parameters":{"type":"object","properties":{"zrt_probe_key":{"type":"string","description":"k"}},"required":["zrt_probe_key"]}}}])";

// The arguments of a test call in an unusual spelling, and the same arguments in Python's notation. Which of the two
// occurs in a rendered prompt shows how the template prints arguments.
inline constexpr std::string_view kProbeText = R"({ "zrt_probe_key" :"zrt value"})";
inline constexpr std::string_view kProbeShown = "{'zrt_probe_key': 'zrt value'}";

// Returns a call of the test tool. Its arguments are an object, or the JSON text of an object.
inline nlohmann::ordered_json probe_call(bool has_object) {
  nlohmann::ordered_json function{{"name", kProbeName}};
  if (has_object)
    function["arguments"] = {{"zrt_probe_key", "zrt value"}};
  else
    function["arguments"] = kProbeText;
  return {{"id", kProbeCallId}, {"type", "function"}, {"function", std::move(function)}};
}

}  // namespace zinc_rt::output
