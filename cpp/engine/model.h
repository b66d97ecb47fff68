// A loaded model: its tokenizer, its chat template, and its replicas, one per device.
// Thread rule: const functions may be called from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>

#include "engine/chat_templates.h"
#include "engine/output_grammar.h"
#include "engine/replica.h"
#include "executor/executor.h"
#include "output/parser.h"
#include "tokenizer/tokenizer.h"
#include "zinc_rt/engine.h"

namespace zinc_rt {

enum class PrefillMode : std::uint8_t { kBatched, kTokenByToken, kValidate };

// How to apply a chat template.
struct RenderOptions {
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool is_probe = false;         // the messages are not fitted to the template (engine/chat_history.h)
  std::string_view system = {};  // put before messages that do not begin with role system; empty: nothing is put
  std::stop_token cancel = {};
};

class Model {
 public:
  static Result<std::shared_ptr<Model>> open(const std::string& path, const EngineOptions& options);
  // Makes a model from open executors, one per entry of options.devices. The model owns them.
  static Result<std::shared_ptr<Model>> make(std::vector<std::unique_ptr<Executor>> executors,
                                             const EngineOptions& options);

  // What an engine shares with all its models.
  struct Joined {
    sched::TenantBook& tenants;
    mem::SipKey key;
    Timeline& timeline;
    std::atomic<std::uint32_t>& next_id;  // of a replica
    std::function<Result<StepLoop*>(const DeviceId&)> loop_for;
  };
  // Called once before the model is used, with its name in the engine.
  Status join(std::string name, const Joined& engine);

  // Never empty. When the model is removed they are freed one by one; the model's description stays.
  const std::vector<std::unique_ptr<Replica>>& replicas() const { return replicas_; }
  // How many pages all tenants together may reserve.
  std::uint64_t reservable_pages() const;

  // The rendered text. The parts that come from the input, not from the template, are marked.
  Result<MarkedText> render(Conversation chat, const RenderOptions& options) const;
  // The parts of such a text in which control tokens are not matched.
  OutsideText outside_of(const MarkedText& text) const;

  const std::string& name() const { return name_; }
  // Over all replicas: the fewest pages and slots and the shortest context of any.
  const ExecutorInfo& info() const { return info_; }
  const ModelConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const output::Formats& formats() const { return formats_; }
  // The tokens in the form for grammars; made when the first grammar needs them.
  Result<std::shared_ptr<const grammar::Vocabulary>> vocabulary();
  GrammarCache& grammars() { return grammars_; }
  const std::vector<std::int32_t>& end_tokens() const { return end_tokens_; }  // those that end a generation
  PrefillMode prefill_mode() const { return prefill_mode_; }
  int n_threads() const { return n_threads_; }  // that its work on the host may use
  const ModelCard& card() const { return card_; }
  const ModelMemory& memory() const { return memory_; }
  std::string template_text() const;  // of the default; empty: there is none
  const EngineOptions& options() const { return options_; }

  std::atomic<std::uint32_t> n_queued{0};  // submitted and without a slot
  std::atomic<std::uint32_t> n_open{0};    // submitted and not ended
  std::atomic<bool> is_closing{false};     // takes no more requests
  std::atomic<sched::Micros> last_used{0};
  std::atomic<float> largest_prefill_difference{0};  // seen by ZINC_RT_BATCHED_PREFILL=validate

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
  std::vector<std::int32_t> markers_;  // tokens that the formats write and that end nothing, sorted
  std::mutex vocabulary_mutex_;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  GrammarCache grammars_;
  std::vector<std::int32_t> end_tokens_;
  ModelCard card_;
  ModelMemory memory_;
  PrefillMode prefill_mode_ = PrefillMode::kBatched;
  int n_threads_ = 1;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace zinc_rt
