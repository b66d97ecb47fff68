// The engine: models, each on a tier with its tokenizer and chat template, and the tenants that share them.
// Thread rule: any thread. Threads of the engine's own run the steps, one a device, and one hands out the events.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zinc_rt/model_card.h"
#include "zinc_rt/stats.h"
#include "zinc_rt/status.h"
#include "zinc_rt/stop.h"
#include "zinc_rt/tenant.h"
#include "zinc_rt/version.h"

namespace zinc_rt {

// Hears how many bytes of weights are ready.
struct OnProgress {
  using Call = std::function<void(std::uint64_t done, std::uint64_t total)>;
  OnProgress() = default;
  OnProgress(Call f) : call(std::move(f)) {}
  template <std::invocable<std::uint64_t, std::uint64_t> F>
  OnProgress(F f) : call(std::move(f)) {}
  // Who listens makes no other model.
  bool operator==(const OnProgress&) const { return true; }

  Call call;  // empty: nobody does
};

// Empty: the environment variable (`zinc-rt tiers --env` lists them), else the default.
struct EngineOptions {
  std::string tier;     // ZINC_RT_TIER, "auto"
  std::string backend;  // ZINC_RT_BACKEND: zinc_rt, or vulkan, which is taken only when asked for
  // The tier's devices that hold a replica of the model each: its weights, slots, pages and prefix cache. Those of t_cpu
  // are parts of the same processor, which share `threads`. More than one: docs/devices.md.
  std::vector<std::uint32_t> devices = {0};
  std::uint32_t max_slots = 64;  // requests that may be under way at once, on each device
  std::uint32_t kv_pages =
      0;  // of each device; 0: max_slots full contexts, at most a quarter of memory and what is free
  std::uint32_t max_context = 0;  // tokens; 0: the model's, at most 32,768
  std::string kv_dtype;           // `--help` has all; empty: i16, where docs/use.md says no other
  // none, mean, last, or cls and rank of encoders; empty: what the file says, which is none where it says nothing. With
  // a pooling but none the model embeds texts, with rank it scores pairs of them, and it generates nothing.
  std::string pooling;
  int threads = 0;                     // ZINC_RT_CPU_WORKERS; 0: what the process may use
  std::string cpu_kernels;             // ZINC_RT_CPU_KERNELS: auto, or a set that `zinc-rt tiers` lists; same bits
  std::string arithmetic;              // ZINC_RT_ARITH: exact or fast
  std::string activations = "int8";    // f32: a debugging mode of the reference kernels, no activation is quantized
  std::uint32_t chunk_cap = 0;         // ZINC_RT_CHUNK_CAP; most prompt tokens a step, 0: the tier's default
  std::string fusion;                  // ZINC_RT_FUSION
  bool repack = true;                  // weights in the form that the tier's kernels read fastest, made at load
  bool mmap = true;                    // with repack off: use the weights where the file is mapped; false: copy them
  bool prefix_cache = true;            // keep the KV of what was computed, for prompts that begin the same way
  std::uint32_t standard_gap_ms = 60;  // that prompts may make between two tokens of streams of class standard
  std::uint32_t queue_cap = 1024;      // requests of a model that may wait; more are refused with a time to try again
  // How tools are shown to a model whose template shows none: empty, not at all; "hermes", by a text of the engine's own
  // in the system message, which the template writes.
  std::string tools;
  // Control tokens that stand in messages, tools and other values of a chat become those tokens, too; else only the
  // template's own text has control tokens (docs/design/jinja.md).
  bool control_tokens_in_text = false;
  std::uint32_t max_models = 0;  // 0: no limit; else add_model unloads the one that was idle longest
  OnProgress on_progress;

  // Equal options give the same model of the same file.
  bool operator==(const EngineOptions&) const = default;
};

enum class LogitsRows : std::uint8_t { kAll, kLast };

class Engine {
 public:
  // Errors name the file, the key or tensor, the tier and its fix.
  static Result<Engine> open(const std::string& model, const EngineOptions& options = {});
  // An engine without a model, to which add_model() gives the first one. Of the options only threads and max_models
  // are read. Errors: kInvalidArgument for threads.
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
