// A loaded model: its executor, tokenizer, chat template, and the runner of its steps.
// Thread rule: const functions may be called from any thread. runner() belongs to whoever holds the engine's turn
// (engine/turn.h).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>

#include "engine/output_grammar.h"
#include "engine/runner.h"
#include "executor/executor.h"
#include "jinja/chat_template.h"
#include "output/parser.h"
#include "tokenizer/tokenizer.h"
#include "zinc_rt/engine.h"

namespace zinc_rt {

enum class PrefillMode : std::uint8_t { kBatched, kTokenByToken, kValidate };

// What a chat template is applied to: JSON texts, as for Engine::apply_template.
struct RenderInput {
  std::string_view messages;
  std::string_view tools = {};
  std::string_view extra = {};
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool as_they_are = false;      // the messages are not fitted to the template (engine/chat_history.h)
  std::string_view system = {};  // put before messages that do not begin with role system; empty: nothing is put
  std::stop_token cancel = {};
};

class Model {
 public:
  static Result<std::shared_ptr<Model>> open(const std::string& path, const EngineOptions& options);
  // Makes a model of an executor that is open already, as tests do. The model owns it.
  static Result<std::shared_ptr<Model>> make(std::unique_ptr<Executor> executor, const EngineOptions& options);

  // Called once before the model is used: its name in the engine, and the tenants and the hash key that all models
  // share.
  void join(std::string name, std::uint32_t id, sched::TenantBook& tenants, mem::SipKey key, Timeline& timeline);
  // Frees the executor and the runner. What describes the model stays. REQUIRES: nothing runs.
  void unload();
  bool is_loaded() const { return runner_ != nullptr; }  // REQUIRES: the turn

  Result<std::string> render(const RenderInput& input) const;

  const std::string& name() const { return name_; }
  const ExecutorInfo& info() const { return info_; }
  const ModelConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const output::Formats& formats() const { return formats_; }
  // The tokens as grammars see them; made when the first grammar needs them.
  Result<std::shared_ptr<const grammar::Vocabulary>> vocabulary();
  GrammarCache& grammars() { return grammars_; }
  const std::vector<std::int32_t>& end_tokens() const { return end_tokens_; }  // those that end a generation
  PrefillMode prefill_mode() const { return prefill_mode_; }
  int n_threads() const { return n_threads_; }  // that its work on the host may use
  const ModelCard& card() const { return card_; }
  // Tells models apart: a hash of all tensors' names, types and shapes, and of a sample of their bytes. REQUIRES: the
  // turn, loaded.
  std::string fingerprint() const;
  const ModelMemory& memory() const { return memory_; }
  const std::string& template_text() const { return template_text_; }
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }
  ModelRunner& runner() { return *runner_; }
  const EngineOptions& options() const { return options_; }

  std::atomic<std::uint32_t> n_queued{0};  // submitted and without a slot
  std::atomic<std::uint32_t> n_open{0};    // submitted and not ended
  std::atomic<bool> is_closing{false};     // takes no more requests
  std::atomic<sched::Micros> last_used{0};
  std::atomic<float> largest_prefill_difference{0};  // seen by ZINC_RT_BATCHED_PREFILL=validate

 private:
  Status probe_template();

  EngineOptions options_;
  std::string name_;
  ExecutorInfo info_;
  ModelConfig config_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  Error template_error_;
  output::TemplateTraits traits_;
  output::Formats formats_;
  std::mutex vocabulary_mutex_;
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  GrammarCache grammars_;
  std::vector<std::int32_t> end_tokens_;
  ModelCard card_;
  ModelMemory memory_;
  std::string template_text_;
  PrefillMode prefill_mode_ = PrefillMode::kBatched;
  int n_threads_ = 1;
  std::uint64_t allocated_bytes_ = 0;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<ModelRunner> runner_;
};

}  // namespace zinc_rt
