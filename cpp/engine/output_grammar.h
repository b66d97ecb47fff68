// Builds the grammar that restricts an answer, from the response format, the tool calls that the request demands, and
// the schemas of strict tools.
// Thread rule: the functions are pure. GrammarCache: any thread.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/mask_pace.h"
#include "output/parser.h"
#include "sched/types.h"
#include "zinc_rt/request.h"

namespace zinc_rt {

// A tool whose calls the grammar of the answer restricts.
struct BoundTool {
  std::string name, schema;  // both as JSON
  bool is_strict = false;
  // Returns the name without its quotes. Only valid for a name that needs no escapes in JSON.
  std::string bare() const { return name.substr(1, name.size() - 2); }
};
// Returns the tools in `tools`, a list in the API's form, if the request demands a call or if a tool is strict.
// Otherwise returns an empty list.
std::vector<BoundTool> bound_tools(const Request& request, const nlohmann::ordered_json& tools);

// GrammarInput holds what make_grammar() builds the grammar of an answer from.
struct GrammarInput {
  const output::Formats& formats;
  const Request& request;
  std::span<const BoundTool> tools;  // the result of bound_tools()
  const output::ToolTypes& types;    // the types of all parameters of the request's tools
  bool opens_reasoning = false;      // the prompt ends inside the model's reasoning
};

// Returns whether the request needs a grammar. A request with a strict tool needs a grammar if the model marks its
// calls with text.
bool wants_grammar(const GrammarInput& input);
// Returns a key that is equal for inputs with equal grammars on one model.
std::string grammar_key(const GrammarInput& input);
// Compiles the grammar. It stops early if the request is cancelled. Errors: kInvalidArgument for a format that this
// model cannot produce; those of grammar::compile.
Result<grammar::Grammar> make_grammar(const GrammarInput& input);

// GrammarCache holds recently used grammars, so that requests with equal formats compile them once. Each tenant's
// grammars may take kTenantBytes. If those of all tenants together exceed kBytes, the least recently used grammar of
// the tenant with the most bytes is dropped. add() drops grammars that no request has used for the time kIdle.
class GrammarCache {
 public:
  static constexpr std::size_t kTenantBytes = 64u << 20, kBytes = 256u << 20;
  static constexpr sched::Micros kIdle = 600'000'000;
  explicit GrammarCache(std::size_t tenant_bytes = kTenantBytes, std::size_t bytes = kBytes)
      : tenant_bytes_(tenant_bytes), bytes_(bytes) {}
  std::optional<OutputGrammar> find(std::uint32_t tenant, const std::string& key);
  void add(std::uint32_t tenant, const std::string& key, const OutputGrammar& grammar);

 private:
  struct Entry {
    std::size_t hash;  // the key's hash
    std::string key;
    OutputGrammar grammar;
    std::size_t bytes;   // measured at the last size_of()
    sched::Micros used;  // when a request last used the grammar
  };
  using Entries = std::list<Entry>;  // ordered by last use, the most recent first
  struct Tenant {
    Entries entries;
    std::size_t bytes = 0, n_added = 0;  // n_added: grammars added since all sizes were measured
  };
  struct Id {
    std::size_t hash;
    std::uint32_t tenant;
    std::string_view key;  // a view of the key in the grammar's Entry
    bool operator==(const Id&) const = default;
  };
  struct HashOfId {
    std::size_t operator()(const Id& id) const { return id.hash ^ id.tenant; }
  };

  static std::size_t size_of(const Entry& entry);
  // Returns the bytes of all cached grammars. This and the next function require that the caller holds mutex_.
  std::size_t n_bytes() const;
  // Moves the tenant's least recently used grammar to `dropped`. Returns true if the tenant has no grammar left.
  bool drop_oldest(std::uint32_t tenant, std::list<Entry>& dropped);

  const std::size_t tenant_bytes_, bytes_;
  std::mutex mutex_;
  std::map<std::uint32_t, Tenant> by_tenant_;  // only tenants that have a grammar in the cache
  std::unordered_map<Id, Entries::iterator, HashOfId> by_id_;
};

}  // namespace zinc_rt
