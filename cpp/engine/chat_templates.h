// The chat templates of a model file: the one without a name, and named ones beside it or in its place.
// Thread rule: immutable once read.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "jinja/chat_template.h"
#include "model/gguf/metadata.h"
#include "output/format.h"

namespace zinc_rt {

struct NamedTemplate {
  std::string name;  // empty: the default
  std::string text;
  std::optional<ChatTemplate> parsed;
  Error error;                    // why it is not parsed
  output::TemplateTraits traits;  // as probed
};

class ChatTemplates {
 public:
  // Keys tokenizer.chat_template and tokenizer.chat_template.NAME; one named "default" is the default.
  // A template that cannot be used is kept with its error.
  static ChatTemplates read(const gguf::Metadata& metadata);

  // The template for a request: "tool_use" for one with tools, where there is one, else the default. Null: there is no
  // default.
  const NamedTemplate* find(bool has_tools) const;
  // The same, and it can be used. kInvalidArgument: there is none, with the names of those that there are; or its error.
  Result<const NamedTemplate*> get(bool has_tools) const;

  std::deque<NamedTemplate>& all() { return all_; }

 private:
  const NamedTemplate* named(std::string_view name) const;

  std::deque<NamedTemplate> all_;
};

}  // namespace zinc_rt
