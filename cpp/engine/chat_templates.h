// The chat templates of a model file. A file may hold an unnamed template, named templates, or both.
// Thread rule: immutable after read().
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
  std::string name;  // empty for the default template
  std::string text;
  std::optional<ChatTemplate> parsed;
  Error error;                    // if `parsed` is empty: why the template cannot be used
  output::TemplateTraits traits;  // found by probing the template
};

class ChatTemplates {
 public:
  // Reads the keys tokenizer.chat_template and tokenizer.chat_template.NAME. A template named "default" is the default.
  // A template that cannot be parsed is kept together with its error.
  static ChatTemplates read(const gguf::Metadata& metadata);

  // Returns the template for a request: the template "tool_use" if the request has tools and the file has that
  // template, else the default template. Returns null if there is no default.
  const NamedTemplate* find(bool has_tools) const;
  // Returns the same template as find(), which must exist and be parsed. Errors: kInvalidArgument with the names of the
  // existing templates if there is none; the parse error if the template did not parse.
  Result<const NamedTemplate*> get(bool has_tools) const;

  std::deque<NamedTemplate>& all() { return all_; }

 private:
  const NamedTemplate* named(std::string_view name) const;

  std::deque<NamedTemplate> all_;
};

}  // namespace zinc_rt
