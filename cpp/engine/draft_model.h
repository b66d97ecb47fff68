// DraftModel is a second, smaller model of the same vocabulary that guesses the next tokens of requests. It has its own
// executor and its own KV cache, on the same device as the replica whose requests it guesses for. Its guesses are
// greedy: the most likely token each time. A guess changes no token of an answer (docs/speculation.md).
//
// The runner calls it between two steps, for the requests that decode:
//   choose()  decides for which requests the draft model should guess, and how many tokens. It counts what the draft
//             model's steps and the rows of the next step cost (draft_depth.h).
//   guess()   runs the draft model: a step that computes the tokens of each text that its cache does not hold yet, then
//             a step for each further guessed token, with all requests together. If the executor runs ahead, each of
//             these steps begins while the one before it runs, and the device takes the token of that one.
// It may also be a block that reads the model's features (ModelPart::kDraftBlock): the model's own block for multi-token
// prediction, or EAGLE-3. The cell of its cache for position p then holds the token at p + 1, and is computed from that
// token and the model's features at p, which the runner passes to note_features(). The block's own features take their
// place for guessed tokens, so those cells are computed again once the model's features are known. The cache may begin
// anywhere in the text, where features are known: RoPE turns queries and keys by the distance of their positions alone.
// An assistant of Gemma 4 is such a block too, but has no cache: it reads the model's, at the positions that the model has
// computed, so it computes one row for each guess and no token of the text (draft_cells.h).
// A slot's cache holds the tokens of the request that was in the slot last. Of them, those that the text has now are
// kept, so after a wrong guess only its tail is computed again. Nothing is kept for another request, so how fast an
// answer comes tells nothing of the texts of others. A text that is far from computed, such as a long prompt, is
// computed in parts, so that no step waits long.
// Thread rule: the thread that holds the Turn of the step loop (engine/turn.h); any thread may read the counts. Nothing
// is allocated after construction.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft_cells.h"
#include "engine/draft_depth.h"
#include "engine/feature_rows.h"
#include "executor/executor.h"
#include "sched/cost_model.h"
#include "sched/types.h"
#include "tokenizer/tokenizer.h"

namespace zinc_rt {

// How a draft model is opened.
struct DraftPlan {
  ExecutorOptions options;
  std::vector<std::uint32_t> feature_layers;  // of its model, for ExecutorOptions::feature_layers
  bool reads_model_pages = false;             // the model must be opened first, for ExecutorOptions::model

  bool reads_features() const { return options.part == ModelPart::kDraftBlock; }
};

// Plans a draft model for a model that is opened with `of_model`. The draft model gets as many slots, on the same device.
// `model` is the model's file. If is_own, `path` is the same file, and the draft model its block for multi-token
// prediction. If a file has nothing but a draft block, that block is the draft model.
// Errors: those of reading the file's metadata; kInvalidArgument if the model's file has no such block.
Result<DraftPlan> plan_draft(const std::string& path, bool is_own, const std::string& model,
                             const ExecutorOptions& of_model);

// Checks that `draft` can guess for `model`: both have the same tokens, and the draft model keeps nothing but KV
// between steps. The larger vocabulary may have further tokens at its end if the file says that they are unused.
// Errors: kInvalidArgument with both files and the first token that differs; kUnavailable for recurrent state and for
// models that generate no tokens.
Status check_draft_model(const Executor& draft, const Executor& model, const Tokenizer& tokenizer);

class DraftModel {
 public:
  // vocabulary: the result of draft_vocabulary(). n_slots: slots of the replica. n_vocab: how many tokens its model has;
  // a guess ends before a token from there on.
  // REQUIRES: the executor has at least n_slots slots.
  DraftModel(std::unique_ptr<Executor> executor, std::vector<std::int32_t> vocabulary, std::uint32_t n_slots,
             std::uint32_t n_vocab);

  // Wanted is a request that decodes and takes guesses. The caller sets the first members.
  struct Wanted {
    std::uint32_t slot = 0;
    sched::RequestId request = 0;
    std::span<const std::int32_t> text;  // all its tokens; must stay valid until guess() has returned
    bool is_fixed = false;               // it takes guesses even if that saves no time
    std::uint32_t n_own = 0;             // tokens of the guess that is there without the draft model, and its chance
    double own_chance = 0;
    std::uint32_t most = 0;       // most tokens to guess
    double model_chance = 0;      // probability that a token of the draft model's guess is right; 0: it takes none
    std::uint32_t n_to_come = 0;  // how many tokens the request will probably still generate

    std::uint32_t n_missing = 0;  // set by choose(): tokens of the text that the slot's cache does not hold
    std::uint32_t depth = 0;      // set by choose(): how many tokens guess() should guess
    // Set by choose(): the draft model seems not to pay for itself, and is tried so that chances and prices are known.
    bool is_trial = false;
    std::span<const std::int32_t> guess{};  // set by guess(): may be shorter than `depth`; valid until the next guess()
  };

  // The next step of the model has n_rows rows without guesses, and at most n_most rows in all. `price` tells what such
  // steps cost. Returns whether guess() would run a step.
  bool choose(std::span<Wanted> wanted, std::uint32_t n_rows, std::uint32_t n_most, const sched::RowPrice& price);
  // Guesses for each request with a depth. If a step fails, the draft model guesses no more (is_broken), and answers go
  // on without it. step_us: how long a step of the model takes, for parts of long texts. of_model: the page tables of the
  // model, which a draft model without a KV cache reads. Returns how long the call took, in us.
  double guess(std::span<Wanted> wanted, double step_us, const PageTables& of_model);
  // Whether the draft model needs the features of each token that the model computes, which it gets by note_features(),
  // with the arguments of FeatureRows::add().
  bool reads_features() const { return features_.dim() > 0; }
  void note_features(std::uint32_t slot, sched::RequestId request, std::uint32_t begin, std::span<const float> rows) {
    features_.add(slot, request, begin, rows);
  }
  // Reports how long a step of the model took that had no tokens of the draft model. Trials take a small part of that
  // time.
  void note_step(double us) { us_without_ += us; }

  const Executor& executor() const { return *executor_; }
  bool is_broken() const { return n_failed_ > 0; }
  // Count the steps of the draft model, and those that failed.
  std::uint64_t n_steps() const { return n_steps_; }
  std::uint64_t n_failed() const { return n_failed_; }

 private:
  struct Slot {
    sched::RequestId request = 0;
    std::uint32_t n_checked = 0;  // of the text's first tokens, so many are known to be those that the cache holds
    std::uint32_t n_known = 0;    // the text's first n_known tokens are in the draft model's vocabulary
    std::uint32_t base = 0;    // the text's position of the cache's first cell; 0 but for a block that reads features
    std::uint32_t n_true = 0;  // so many cells were computed from the text's own tokens
  };
  // The tokens of the text that belong to the slot's cells.
  std::span<const std::int32_t> text_of_cells(const Wanted& wanted) const;
  bool place_cache(const Wanted& wanted);
  void look_at(Wanted& wanted);
  double catch_up_us(const Wanted& wanted) const;
  std::uint32_t choose_fixed(std::span<Wanted> wanted, std::uint32_t n_rows, double step_us);
  void choose_best(std::span<Wanted> wanted, std::uint32_t n_rows, std::uint32_t n_most, const sched::RowPrice& price);
  void choose_trial(std::span<Wanted> wanted, std::uint32_t n_rows, const sched::RowPrice& price);
  // A step that is being made or runs: its input, its size, and the slot of each output row.
  struct Step {
    StepInput input;
    std::vector<float> features;  // StepInput::features
    std::vector<std::uint32_t> output_slots;
    sched::StepSize size;
    std::uint32_t number = 0;  // each of its output rows is the guess of this number of its slot, from 0
    bool is_decode = false;
    std::int64_t began_us = 0;
  };
  void add_token(Step& step, std::uint32_t slot, std::int32_t token);
  void add_features(Step& step, std::span<const float> features, std::size_t at);
  void add_output(Step& step, std::uint32_t slot);
  std::uint32_t catch_up(Step& step, std::span<Wanted> wanted, double step_us);
  void add_guesses(Step& step, std::span<Wanted> wanted);
  bool run_steps(std::span<Wanted> wanted, double step_us);
  void name_cells(const Step& step);
  bool begin(Step& step);
  bool finish(Step& step);
  bool end_of_guesses(const Step& step, const Error& error);

  const std::unique_ptr<Executor> executor_;
  const std::uint32_t n_vocab_, context_;
  std::vector<Slot> slots_;
  const std::unique_ptr<DraftCells> cells_;
  std::vector<std::int32_t> guesses_;  // kMostGuesses per slot
  std::vector<std::uint32_t> n_guesses_;
  std::vector<std::uint32_t> n_asked_;  // guesses that steps have begun with; the last may not be there yet

  const FeatureInput reads_;
  const std::uint32_t own_dim_;  // width of a row of own_features_
  // The tokens that the rows of the draft model's output matrix stand for (draft_vocabulary.h).
  const std::vector<std::int32_t> vocabulary_;
  FeatureRows features_;             // of the model
  std::vector<float> own_features_;  // of the block, after the token that it computed last; a row per slot

  // The second is used only if the executor runs ahead.
  Step steps_[2];
  StepOutput output_;
  std::int64_t finished_us_ = 0;  // when the last step ended

  DraftDepth depth_;
  std::vector<GuessOption> options_;
  std::vector<Wanted*> optional_;  // the request of each element of options_
  sched::RowPrice price_;          // of steps with one or two tokens a slot, by their slots
  sched::CostModel cost_;          // of all steps
  // If the draft model did not pay for many requests, choose() does not consider it in its next pause_ calls. n_paused_
  // counts how many of them there were.
  std::uint32_t pause_ = 0, n_paused_ = 0;
  double us_without_ = 0;  // time of the model's steps since the last ones with guesses, less what trials took of it
  std::atomic<std::uint64_t> n_steps_{0}, n_failed_{0};
};

}  // namespace zinc_rt
