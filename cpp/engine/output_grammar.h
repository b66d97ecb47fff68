// The grammar of an answer: of its format, of calls that must be made, and of calls of strict tools.
// Thread rule: pure functions, and a cache for any thread.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/mask_pace.h"
#include "output/parser.h"
#include "zinc_rt/request.h"

namespace zinc_rt {

// What a grammar is made of. `tools`: the request's, a JSON list, or empty.
struct GrammarInput {
  const output::Formats& formats;
  const Request& request;
  std::string_view tools;
  bool opens_reasoning = false;  // the prompt ends within the reasoning
};

// Whether the request asks for a grammar at all. Strict tools do where the model's calls have a marker that is written.
bool wants_grammar(const GrammarInput& input);
// Equal for inputs that have the same grammar on one model.
std::string grammar_key(const GrammarInput& input);
// Errors: kInvalidArgument, for a format that cannot be had from this model, and grammar::compile's.
Result<grammar::Grammar> make_grammar(const GrammarInput& input);

// The grammars that were used last, by tenant; each tenant's take at most kBytes.
class GrammarCache {
 public:
  static constexpr std::size_t kBytes = 64u << 20;
  std::optional<OutputGrammar> find(std::uint32_t tenant, const std::string& key);
  void add(std::uint32_t tenant, const std::string& key, const OutputGrammar& grammar);

 private:
  struct Entry {
    std::string key;
    OutputGrammar grammar;
  };
  std::mutex mutex_;
  std::map<std::uint32_t, std::list<Entry>> by_tenant_;  // used last: in front
};

}  // namespace zinc_rt
