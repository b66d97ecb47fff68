// ChatTemplates holds the chat templates of a model file, and chooses the one for a request. A file may hold an unnamed
// template, named templates, or both.
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
  std::string name;  // empty for the unnamed (default) template
  std::string text;
  std::optional<ChatTemplate> parsed;
  Error error;                    // why the template cannot be used, if `parsed` is empty
  output::TemplateTraits traits;  // what the template can render, found by probing it (output/content_form.h)
};

class ChatTemplates {
 public:
  // Reads the keys tokenizer.chat_template and tokenizer.chat_template.NAME. A template named "default" is the default.
  // A template that cannot be parsed is kept together with its error.
  static ChatTemplates read(const gguf::Metadata& metadata);

  // Returns the template for a request: the template "tool_use" if the request has tools and the file has that
  // template, else the default template. Returns null if there is no default.
  const NamedTemplate* find(bool has_tools) const;
  // Returns the same template as find(), but fails if there is no usable one. Errors: kInvalidArgument, with the names
  // of the existing templates, if there is none; the parse error if the template did not parse.
  Result<const NamedTemplate*> get(bool has_tools) const;

  std::deque<NamedTemplate>& all() { return all_; }

 private:
  const NamedTemplate* named(std::string_view name) const;

  std::deque<NamedTemplate> all_;
};

}  // namespace zinc_rt
