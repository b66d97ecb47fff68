// Defines the members of a grammar Builder: the rules made so far, the limits, and the work used.
#pragma once

#include <optional>

#include "grammar/compiled.h"
#include "grammar/json_lexemes.h"

namespace zinc_rt::grammar {

struct Builder::Parts {
  explicit Parts(Options given)
      : options(std::move(given)),
        compiled(std::make_shared<CompiledGrammar>(options.limits)),
        rules(compiled->rules),
        work(options.limits, options.cancel) {}

  // Returns the lexemes of JSON, which the first call creates. Errors: kInvalidArgument if the caller's pattern for
  // white space allows other text.
  Result<JsonLexemes*> json();
  // Returns a regex for any bytes that contain none of the texts.
  Regex free_text(std::span<const std::string> without);
  Result<Symbol> arguments(const Json& schema, const ArgumentForm& form);
  // Returns a regex for any bytes that end with `end` and contain none of the texts before it.
  Regex text_up_to(std::string_view end, std::span<const std::string> without);

  Options options;
  std::shared_ptr<CompiledGrammar> compiled;
  Rules& rules;
  CompileWork work;
  std::optional<JsonLexemes> json_lexemes;
};

}  // namespace zinc_rt::grammar
