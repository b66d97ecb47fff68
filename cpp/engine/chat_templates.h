// A model file's chat templates: the unnamed one, and named ones in addition to it or instead of it.
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
  // Reads the keys tokenizer.chat_template and tokenizer.chat_template.NAME; one named "default" is the default. A
  // template that cannot be used is kept with its error.
  static ChatTemplates read(const gguf::Metadata& metadata);

  // The template for a request: "tool_use" if the request has tools and the file that template, else the default. Null:
  // no default.
  const NamedTemplate* find(bool has_tools) const;
  // As find(), but fails if there is no such template or it did not parse. Errors: kInvalidArgument with the names of the
  // templates that exist; else the template's own parse error.
  Result<const NamedTemplate*> get(bool has_tools) const;

  std::deque<NamedTemplate>& all() { return all_; }

 private:
  const NamedTemplate* named(std::string_view name) const;

  std::deque<NamedTemplate> all_;
};

}  // namespace zinc_rt
