// Builds the grammar of an answer, from its format, calls that must be made, and calls of strict tools.
// Thread rule: pure functions, and a cache for any thread.
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

// A tool whose calls are bound by the answer's grammar.
struct BoundTool {
  std::string name, schema;  // as JSON
  bool is_strict = false;
  // The name as it is, if nothing in it must be escaped.
  std::string bare() const { return name.substr(1, name.size() - 2); }
};
// The request's tools, a list as in the API, if it demands a call or one of the tools is strict. Otherwise none.
std::vector<BoundTool> bound_tools(const Request& request, const nlohmann::ordered_json& tools);

// What a grammar is made of.
struct GrammarInput {
  const output::Formats& formats;
  const Request& request;
  std::span<const BoundTool> tools;  // bound_tools() of them
  const output::ToolTypes& types;    // of all of them
  bool opens_reasoning = false;      // the prompt ends within the reasoning
};

// Whether the request needs a grammar. Strict tools do if the model marks its calls with text.
bool wants_grammar(const GrammarInput& input);
// Equal for inputs that have the same grammar on one model.
std::string grammar_key(const GrammarInput& input);
// Stops when the request is cancelled. Errors: kInvalidArgument for a format that this model cannot give; those of
// grammar::compile.
Result<grammar::Grammar> make_grammar(const GrammarInput& input);

// The recently used grammars, per tenant: at most kTenantBytes each. If all together exceed kBytes, the tenant with the
// most loses its oldest. A grammar that was not used for kIdle is dropped when another is added.
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
    std::size_t hash;  // of the key
    std::string key;
    OutputGrammar grammar;
    std::size_t bytes;   // as they were measured last
    sched::Micros used;  // when
  };
  using Entries = std::list<Entry>;  // used last: in front
  struct Tenant {
    Entries entries;
    std::size_t bytes = 0, n_added = 0;  // since all were measured
  };
  struct Id {
    std::size_t hash;
    std::uint32_t tenant;
    std::string_view key;  // the entry's
    bool operator==(const Id&) const = default;
  };
  struct HashOfId {
    std::size_t operator()(const Id& id) const { return id.hash ^ id.tenant; }
  };

  static std::size_t size_of(const Entry& entry);
  // REQUIRES: mutex_.
  std::size_t n_bytes() const;
  // Returns true if it was the tenant's last one.
  bool drop_oldest(std::uint32_t tenant, std::list<Entry>& dropped);

  const std::size_t tenant_bytes_, bytes_;
  std::mutex mutex_;
  std::map<std::uint32_t, Tenant> by_tenant_;  // each has entries
  std::unordered_map<Id, Entries::iterator, HashOfId> by_id_;
};

}  // namespace zinc_rt
