// An Engine runs one or more models for one or more tenants. Each model has a tier, a tokenizer and a chat template.
// Thread rule: any thread. The engine's own threads run the steps (one thread per device) and deliver the events (one
// thread). In an engine without threads, the callers of pump() and of functions that wait do that work.
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

// Pumped tells what Engine::pump() did.
struct Pumped {
  bool ran = false;  // a step ran, or a sink took events
  // If nothing ran: after how many ms there may be something to do, because a deadline or a rate is due then. Infinite:
  // nothing before a request is submitted or cancelled, or a sink has room again.
  double wait_ms = 0;
};

class Engine {
 public:
  // Opens an engine with one model. Errors name the file, the key or tensor, the tier, and what would help.
  static Result<Engine> open(const std::string& model, const EngineOptions& options = {});
  // Opens an engine without threads for steps, events, grammars and masks, for programs that have their own loop. What
  // computes inside a step, such as T-CPU, still has its threads. Where the system has no threads, such as in a web page,
  // open() does the same. Errors: as in open().
  static Result<Engine> open_without_threads(const std::string& model, const EngineOptions& options = {});
  // Runs a step on each device that has something to compute, and delivers its events to the sinks. A step that fails
  // ends its requests with the error. Must not be called from a sink. Errors: kUnavailable for an engine with threads.
  Result<Pumped> pump();
  // Starts an engine without a model; add_model() then adds the first one. Only the options threads and max_models are
  // used. Errors: kInvalidArgument if check(options) fails.
  static Result<Engine> start(const EngineOptions& options = {});
  // Adds a model with its own slots, pages and options, including tier and threads. Errors: as in open(), and also
  // kInvalidArgument if another model has this name; kExhausted if max_models models are loaded and none of them is
  // idle.
  Status add_model(const std::string& path, const std::string& name, const EngineOptions& options = {});
  // Stops accepting requests for the model, waits until its requests have ended, then frees it. Errors: kNotFound;
  // kInvalidArgument for the only model of an engine that was opened with one.
  Status remove_model(const std::string& name);
  std::vector<std::string> models() const;  // names of the loaded models; the first is the default
  // Stops accepting requests and waits until all requests have ended. Returns false if some still run after timeout_ms;
  // these continue.
  bool drain(double timeout_ms);
  // Ends all generations with an error. Later calls on the engine, its tenants and sessions return kUnavailable.
  void close();
  bool is_closed() const;

  std::string tier() const;  // tier of the first model, such as "t_cpu"; empty if no model is loaded
  // Returns the first model's arithmetic: "exact", or "fast" if that was requested and the tier supports it.
  std::string arithmetic() const;
  // Returns the version of the arithmetic contract (docs/arithmetic.md), as in version.h.
  static unsigned arithmetic_version() { return kArithmeticVersion; }
  // In this function and the functions below, `model` is the name of a model. An empty name means the first model.
  // Errors: kNotFound if no model of that name is loaded.
  Result<ModelCard> model_card(const std::string& model = {}) const;
  Result<ModelMemory> memory_plan(const std::string& model = {}) const;
  // Returns the chat template from the model file, or an empty text if the file has none.
  std::string chat_template(const std::string& model = {}) const;
  // Returns counts of steps, slots, pages, queues and prefix cache: in total, per model and per device. The numbers are
  // as of the end of the last step, so the call waits for no step.
  EngineStats stats() const;

  // Records what the step threads do, at most n_records spans, until stop_trace() is called. stop_trace() writes the
  // spans to `path` as Chrome trace JSON, which ui.perfetto.dev can show.
  Status start_trace(std::uint32_t n_records = 1u << 18);
  Status stop_trace(const std::string& path);

  Result<std::vector<std::int32_t>> tokenize(std::string_view text, bool add_special = true, bool parse_special = true,
                                             const std::string& model = {}) const;
  Result<std::string> detokenize(std::span<const std::int32_t> ids, bool skip_special = false,
                                 const std::string& model = {}) const;
  // Returns the bytes that this token adds to a text, which may be a part of a character. Returns an empty text for an
  // id that stands for no bytes.
  std::string token_bytes(std::int32_t id, const std::string& model = {}) const;
  // Returns the prompt tokens that this request would have. add_special says whether BOS and EOS are added; if it has
  // no value, the request decides. Errors: those of submit() that concern the prompt.
  Result<std::vector<std::int32_t>> prompt_tokens(Request request, std::optional<bool> add_special = {}) const;
  // Renders a chat with the model's template and returns the prompt. `messages` is a JSON list. `tools` is a JSON list
  // or empty. `extra` is a JSON object of further template variables, or empty. With continue_final_message the prompt
  // ends with the content of the last message, so that a generation continues this text.
  Result<std::string> apply_template(std::string_view messages, std::string_view tools = {},
                                     bool add_generation_prompt = true, std::string_view extra = {},
                                     const std::string& model = {}, bool continue_final_message = false) const;
  // Renders the messages of a request with the model's template and returns the prompt.
  Result<std::string> apply_template(Request request) const;

  // Returns the logits after each token, or only after the last one, as [rows, vocab_size]. `chunk` is the number of
  // tokens per step; with 0 the engine chooses it. The call uses the pages of one slot while it runs.
  Result<std::vector<float>> logits(std::span<const std::int32_t> ids, LogitsRows rows, std::uint32_t chunk = 0,
                                    const std::string& model = {}, const StopAsked& is_stopped = {}) const;
  // Returns the residual stream after a layer, as [n, model_dim]. Layer -1 means the embeddings.
  Result<std::vector<float>> hidden(std::span<const std::int32_t> ids, int layer, const std::string& model = {},
                                    const StopAsked& is_stopped = {}) const;
  std::uint32_t vocab_size(const std::string& model = {}) const;  // returns 0 for a name that does not exist
  std::uint32_t model_dim(const std::string& model = {}) const;

  // Returns the tenant of this name, and creates it at the first call for that name. If a quota is given, it replaces
  // the tenant's quota.
  Result<Tenant> tenant(const std::string& name, const std::optional<TenantQuota>& quota = {});
  // Frees the tenant's name and its reserved pages at once. Handles, sessions and requests of the tenant keep working,
  // and the tenant's remaining data is freed with the last of them. A tenant that is created later under the same name
  // is a new tenant. Errors: kNotFound.
  Status remove_tenant(const std::string& name);

 private:
  explicit Engine(std::shared_ptr<EngineCore> core);
  std::shared_ptr<EngineCore> core_;
};

}  // namespace zinc_rt
