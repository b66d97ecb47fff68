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
  // Reads the unnamed template from the key tokenizer.chat_template, and named ones from tokenizer.chat_template.NAME.
  // If there is no unnamed template, the one named "default" takes its place. A template that cannot be used is kept
  // together with its error.
  static ChatTemplates read(const gguf::Metadata& metadata);

  // Returns the template for a request: the template "tool_use" if the request has tools and the file has that
  // template, else the default template. Returns null if there is no default.
  const NamedTemplate* find(bool has_tools) const;
  // Returns the template that find() returns. Errors: if find() returns null, kInvalidArgument, which names the
  // templates that the file does have; if the template cannot be used, its `error`.
  Result<const NamedTemplate*> get(bool has_tools) const;

  std::deque<NamedTemplate>& all() { return all_; }

 private:
  const NamedTemplate* named(std::string_view name) const;

  std::deque<NamedTemplate> all_;
};

}  // namespace zinc_rt
