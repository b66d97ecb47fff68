// ChatTemplate is a Jinja2 engine for chat templates. It renders the same bytes as Python's jinja2 in the configuration
// of Hugging Face transformers (immutable sandbox, trim_blocks, lstrip_blocks, loop controls, generation blocks, tojson
// without HTML escapes). Not supported, and refused by name: loading other templates, autoescape, urlize, random,
// lipsum. Integers have 64 bits. Errors: kInvalidArgument for a wrong template or context, including raise_exception;
// kExhausted if a limit is reached; kCancelled if limits.cancel is requested.
// Thread rule: immutable after parse; render may run in many threads at once.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/marked_text.h"
#include "jinja/limits.h"
#include "jinja/own_words.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

namespace jinja {
struct ParsedTemplate;
}

class ChatTemplate {
 public:
  static Result<ChatTemplate> parse(std::string source);
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // Renders a chat. `context` is an object with messages, tools, add_generation_prompt, bos_token and whatever else the
  // template names. Its texts are moved out of `context`, so that only one copy is in memory.
  Result<std::string> render(nlohmann::ordered_json context, const RenderLimits& limits = {}) const;

  // Renders the same text, and marks the bytes that came from the context, that is, from a client, and not from the
  // template (docs/design/jinja.md). `own` holds further variables whose texts count as the template's, so they are not
  // marked. A text in `words` is not marked either, if it is the value of the key words.key in the context.
  Result<MarkedText> render_marked(nlohmann::ordered_json context, nlohmann::ordered_json own,
                                   const jinja::OwnWords& words, const RenderLimits& limits = {}) const;

 private:
  explicit ChatTemplate(std::unique_ptr<jinja::ParsedTemplate> parsed);

  std::unique_ptr<const jinja::ParsedTemplate> parsed_;
};

}  // namespace zinc_rt
