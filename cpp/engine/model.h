// Model is a loaded model: its tokenizer, its chat templates, its description, and its replicas, one per device.
// Thread rule: const functions may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "base/speculate.h"
#include "engine/chat_templates.h"
#include "engine/output_grammar.h"
#include "engine/replica.h"
#include "executor/executor.h"
#include "output/parser.h"
#include "tokenizer/tokenizer.h"
#include "zinc_rt/engine.h"

namespace zinc_rt {

enum class PrefillMode : std::uint8_t { kBatched, kTokenByToken, kValidate };

// RenderOptions tells render() how to apply a chat template.
struct RenderOptions {
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool is_probe = false;  // renders the messages as they are, without fit_history() (engine/chat_history.h)
  // A system message that is inserted if the first message does not have the role "system". Empty: none is inserted.
  std::string_view system = {};
  std::stop_token cancel = {};
};

class Model {
 public:
  // Loads the file on all devices that the options name.
  static Result<std::shared_ptr<Model>> open(const std::string& path, const EngineOptions& options);
  // Builds a model from open executors, one for each entry of options.devices. The model owns them. `drafts` are the
  // executors of the draft model, one for each device; empty: no draft model guesses.
  static Result<std::shared_ptr<Model>> make(std::vector<std::unique_ptr<Executor>> executors,
                                             const EngineOptions& options,
                                             std::vector<std::unique_ptr<Executor>> drafts = {});

  // Joined holds what all models of an engine share. EngineCore passes it to join().
  struct Joined {
    sched::TenantBook& tenants;
    mem::SipKey key;
    Timeline& timeline;
    std::atomic<std::uint32_t>& next_id;  // gives the next replica its number
    std::function<Result<StepLoop*>(const DeviceId&)> loop_for;
  };
  // Connects the model to its engine. `name` is the model's name in the engine. Called once, before the model is used.
  Status join(std::string name, const Joined& engine);

  // Returns the replicas, at least one. When the model is removed, its replicas are unloaded one by one and stay in the
  // list. What the other const functions return stays valid.
  const std::vector<std::unique_ptr<Replica>>& replicas() const { return replicas_; }
  // Returns how many pages all tenants together may reserve.
  std::uint64_t reservable_pages() const;

  // Renders messages with the template. The result marks which parts come from the input and not from the template.
  Result<MarkedText> render(Conversation chat, const RenderOptions& options) const;
  // Returns the parts of a rendered text in which the tokenizer must not match control tokens, because a client wrote
  // them.
  OutsideText outside_of(const MarkedText& text) const;

  const std::string& name() const { return name_; }
  // Describes the open model. If there are several replicas, the numbers of pages, slots and tokens per context are the
  // smallest among them.
  const ExecutorInfo& info() const { return info_; }
  const ModelConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const output::Formats& formats() const { return formats_; }
  // Returns the vocabulary in the form that grammars need. The first call builds it.
  Result<std::shared_ptr<const grammar::Vocabulary>> vocabulary();
  GrammarCache& grammars() { return grammars_; }
  const std::vector<std::int32_t>& end_tokens() const { return end_tokens_; }  // tokens that end a generation
  PrefillMode prefill_mode() const { return prefill_mode_; }
  // Returns how many tokens a step may guess for a request. `of_tenant` is TenantQuota::speculate. The request's setting
  // goes before the tenant's, and the tenant's before the model's. Each may lower the limit of those after it, but not
  // raise it.
  Speculation speculation(const Request& request, std::string_view of_tenant) const {
    Speculation wanted = speculation_;
    for (const std::string_view text : {of_tenant, std::string_view(request.speculate)})
      if (const auto own = find_speculation(text)) wanted = {std::min(own->most, wanted.most), own->is_fixed};
    return wanted;
  }
  int n_threads() const { return n_threads_; }  // how many threads the model's work on the host may use
  const ModelCard& card() const { return card_; }
  const ModelMemory& memory() const { return memory_; }
  std::string template_text() const;  // the default template; empty if there is none
  const EngineOptions& options() const { return options_; }

  std::atomic<std::uint32_t> n_queued{0};  // requests that were submitted and have no slot yet
  std::atomic<std::uint32_t> n_open{0};    // requests that were submitted and have not ended
  std::atomic<bool> is_closing{false};     // the model accepts no more requests
  std::atomic<sched::Micros> last_used{0};
  // The largest difference that ZINC_RT_BATCHED_PREFILL=validate has found.
  std::atomic<float> largest_prefill_difference{0};

 private:
  Status probe_templates();
  Result<MarkedText> render_with(const NamedTemplate& chat, Conversation conversation,
                                 const RenderOptions& options) const;

  EngineOptions options_;
  std::string name_;
  ExecutorInfo info_;
  ModelConfig config_;
  std::optional<Tokenizer> tokenizer_;
  ChatTemplates templates_;
  output::Formats formats_;
  // Ids of the tokens that mark parts of the output (reasoning, tool calls) and do not end a generation, sorted.
  std::vector<std::int32_t> markers_;
  std::mutex vocabulary_mutex_;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  GrammarCache grammars_;
  std::vector<std::int32_t> end_tokens_;
  ModelCard card_;
  ModelMemory memory_;
  PrefillMode prefill_mode_ = PrefillMode::kBatched;
  int n_threads_ = 1;
  Speculation speculation_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace zinc_rt
