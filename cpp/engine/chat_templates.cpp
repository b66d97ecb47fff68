#include "engine/chat_templates.h"

#include <algorithm>

#include "base/error.h"

namespace zinc_rt {
namespace {

constexpr std::string_view kKey = "tokenizer.chat_template", kToolUse = "tool_use", kDefault = "default";

NamedTemplate make(std::string_view name, std::string_view key, const gguf::Metadata& metadata) {
  NamedTemplate out;
  out.name = name;
  const auto text = metadata.get_string(key);
  if (!text) {
    out.error = text.error();
    return out;
  }
  out.text = *text;
  if (out.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    out.error = {StatusCode::kInvalidArgument,
                 fmt::format("[chat_template] the model file's template (key {}) is empty; give a prompt instead", key),
                 0};
    return out;
  }
  auto parsed = ChatTemplate::parse(out.text);
  if (parsed)
    out.parsed = std::move(*parsed);
  else
    out.error = parsed.error();
  return out;
}

}  // namespace

ChatTemplates ChatTemplates::read(const gguf::Metadata& metadata) {
  ChatTemplates out;
  if (metadata.contains(kKey)) out.all_.push_back(make("", kKey, metadata));
  for (const auto& [key, value] : metadata.entries()) {
    if (!key.starts_with(kKey) || key.size() <= kKey.size() + 1 || key[kKey.size()] != '.') continue;
    const auto name = std::string_view(key).substr(kKey.size() + 1);
    if (name == kDefault && out.named("") != nullptr) continue;
    out.all_.push_back(make(name == kDefault ? "" : name, key, metadata));
  }
  return out;
}

const NamedTemplate* ChatTemplates::named(std::string_view name) const {
  const auto it = std::ranges::find(all_, name, &NamedTemplate::name);
  return it == all_.end() ? nullptr : &*it;
}

const NamedTemplate* ChatTemplates::find(bool has_tools) const {
  const auto* for_tools = has_tools ? named(kToolUse) : nullptr;
  return for_tools != nullptr ? for_tools : named("");
}

Result<const NamedTemplate*> ChatTemplates::get(bool has_tools) const {
  const auto* found = find(has_tools);
  if (found != nullptr && found->parsed) return found;
  if (found != nullptr) return std::unexpected(found->error);
  if (all_.empty())
    return fail(StatusCode::kInvalidArgument, "[chat_template] the model file has none (key {}); give a prompt instead",
                kKey);
  std::string names;
  for (const auto& one : all_) names += (names.empty() ? "" : ", ") + one.name;
  return fail(StatusCode::kInvalidArgument,
              "[chat_template] the model file has no default one (key {}), only those named {}, of which {} is for "
              "requests with tools; give a prompt instead",
              kKey, names, kToolUse);
}

}  // namespace zinc_rt
