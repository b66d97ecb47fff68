// The engine: models, each on a tier with its tokenizer and chat template, and the tenants that share them.
// Thread rule: any thread. Threads of the engine's own run the steps, one a device, and one hands out the events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/engine_options.h"
#include "zinc_rt/model_card.h"
#include "zinc_rt/stats.h"
#include "zinc_rt/status.h"
#include "zinc_rt/stop.h"
#include "zinc_rt/tenant.h"
#include "zinc_rt/version.h"

namespace zinc_rt {

enum class LogitsRows : std::uint8_t { kAll, kLast };

class Engine {
 public:
  // Errors name the file, the key or tensor, the tier and its fix.
  static Result<Engine> open(const std::string& model, const EngineOptions& options = {});
  // An engine without a model, to which add_model() gives the first one. Of the options only threads and max_models
  // are read. Errors: kInvalidArgument as check() of the options.
  static Result<Engine> start(const EngineOptions& options = {});
  // A further model, with slots and pages of its own; tier and threads are the engine's choice again. Errors also:
  // kInvalidArgument for a name that is taken, kExhausted when max_models are loaded and none is idle.
  Status add_model(const std::string& path, const std::string& name, const EngineOptions& options = {});
  // Takes no more requests for it, waits for those that there are, frees it. Errors: kNotFound; kInvalidArgument for
  // the only one of an engine that was opened with a model.
  Status remove_model(const std::string& name);
  std::vector<std::string> models() const;  // names, the first is the default
  // No request is taken any more; waits until those that there are have ended. False: not all had by then, and they run
  // on.
  bool drain(double timeout_ms);
  // Ends all generations with an error; later calls on the engine, its tenants and sessions give kUnavailable.
  void close();
  bool is_closed() const;

  std::string tier() const;        // of the first model: "t_cpu"; empty: there is none
  std::string arithmetic() const;  // what is active for it: "exact", or "fast" where it was asked for and there
  static unsigned arithmetic_version() { return kArithmeticVersion; }  // of the contract: docs/arithmetic.md
  // Here and below `model` is a name, empty for the first model. Errors: kNotFound for a name that does not exist, and
  // where no model is loaded.
  Result<ModelCard> model_card(const std::string& model = {}) const;
  Result<ModelMemory> memory_plan(const std::string& model = {}) const;
  // The template of chats as the model file has it; empty: none.
  std::string chat_template(const std::string& model = {}) const;
  // Steps, slots, pages, queues, prefix cache, in all, by model and by device, as of the end of the last steps. It waits
  // for no step.
  EngineStats stats() const;

  // Records what the step thread does, up to n_records spans, until stop_trace writes it as Chrome trace JSON, which
  // ui.perfetto.dev shows.
  Status start_trace(std::uint32_t n_records = 1u << 18);
  Status stop_trace(const std::string& path);

  Result<std::vector<std::int32_t>> tokenize(std::string_view text, bool add_special = true, bool parse_special = true,
                                             const std::string& model = {}) const;
  Result<std::string> detokenize(std::span<const std::int32_t> ids, bool skip_special = false,
                                 const std::string& model = {}) const;
  // The bytes that one token adds to a text, which may be part of a character. Empty for ids that have none.
  std::string token_bytes(std::int32_t id, const std::string& model = {}) const;
  // The prompt tokens that the request would have; with add_special those with BOS and EOS, or without. Errors: those of
  // submit() about the prompt.
  Result<std::vector<std::int32_t>> prompt_tokens(Request request, std::optional<bool> add_special = {}) const;
  // messages: a JSON list; tools: a JSON list or empty; extra: a JSON object of further template variables or empty.
  // continue_final_message: the text ends with the last message's content (Request).
  Result<std::string> apply_template(std::string_view messages, std::string_view tools = {},
                                     bool add_generation_prompt = true, std::string_view extra = {},
                                     const std::string& model = {}, bool continue_final_message = false) const;

  // Logits after each token (or the last alone), [rows, vocab_size]; chunk: tokens a step, 0: the engine's. A slot's
  // worth of pages is used meanwhile.
  Result<std::vector<float>> logits(std::span<const std::int32_t> ids, LogitsRows rows, std::uint32_t chunk = 0,
                                    const std::string& model = {}, const StopAsked& is_stopped = {}) const;
  // The residual stream after a layer (-1: the embeddings), [n, model_dim].
  Result<std::vector<float>> hidden(std::span<const std::int32_t> ids, int layer, const std::string& model = {},
                                    const StopAsked& is_stopped = {}) const;
  std::uint32_t vocab_size(const std::string& model = {}) const;  // 0 for a name that does not exist
  std::uint32_t model_dim(const std::string& model = {}) const;

  // The tenant of this name, made on the first call; a quota given later replaces the earlier one.
  Result<Tenant> tenant(const std::string& name, const std::optional<TenantQuota>& quota = {});
  // Its name and what is reserved for it are free again; the rest of it goes with the last handle, session and request
  // of it, which stay good. A tenant of that name that is made later is a new one. Errors: kNotFound.
  Status remove_tenant(const std::string& name);

 private:
  explicit Engine(std::shared_ptr<EngineCore> core);
  std::shared_ptr<EngineCore> core_;
};

}  // namespace zinc_rt
