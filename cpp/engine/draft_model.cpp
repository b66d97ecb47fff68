#include "engine/draft_model.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "engine/clock.h"
#include "model/gguf/metadata.h"

namespace zinc_rt {
namespace {

// If the options set no number of pages, a draft model's pages take at most 1 / kKvPart of memory. That holds more
// tokens than the model's own pages do, because a page of a small model is small.
constexpr std::uint32_t kKvPart = 32;
// The context of a model for which the options set none (executor/sizes.cpp).
constexpr std::uint32_t kUsualContext = 32768;

// A text of which at most this many tokens are missing in the cache is computed in one step. More of a text are
// computed in parts that take at most kPartUs, or the part kPartOfStep of the model's step if that is longer; before
// the draft model's speed is known, a part has kFirstPart tokens.
constexpr std::uint32_t kNear = kMostGuesses + 1;
constexpr double kPartUs = 5'000, kPartOfStep = 0.5;
constexpr std::uint32_t kFirstPart = 32;
// While the draft model seems not to pay, kTried tokens of one request are guessed now and then all the same, because
// chances and prices change. Such trials take at most the part kTriesCost of the time of the steps between them.
constexpr std::uint32_t kTried = 4;
constexpr double kTriesCost = 0.01;
// With this many requests, choosing takes a percent of a small model's step. So after it found that the draft model does
// not pay, it is left out 1, 3, 7, ... times, at most kLongestPause times.
constexpr std::uint32_t kManyRequests = 8, kLongestPause = 15;

GuessOption option_of(const DraftModel::Wanted& w) {
  return {.n_own = w.n_own, .own_chance = w.own_chance, .n_model = w.most, .model_chance = w.model_chance};
}

std::unique_ptr<DraftCells> make_cells(const ExecutorInfo& info, std::uint32_t n_slots) {
  if (info.reads_model_pages) return std::make_unique<ModelCells>(n_slots);
  return std::make_unique<OwnDraftCells>(n_slots, info.n_pages, info.max_context);
}

constexpr std::int64_t kUnusedToken = 5;  // a token's type in tokenizer.ggml.token_type

// Checks that the tokens from n_shared on, which only this model has, are unused.
Status check_unused(const Executor& model, const Tokenizer& tokenizer, std::size_t n_shared, const Executor& other) {
  const auto types = model.weights().metadata().get_ints("tokenizer.ggml.token_type");
  for (std::size_t id = n_shared; id < tokenizer.n_vocab(); ++id)
    if (!types || id >= types->size() || (*types)[id] != kUnusedToken)
      return fail({StatusCode::kInvalidArgument, "draft_model"},
                  "[draft_model] {} has {} tokens, {} has {}, and token {} ({}) is used; a draft model has the "
                  "vocabulary of its model",
                  model.weights().path(), tokenizer.n_vocab(), other.weights().path(), n_shared, id,
                  gguf::quoted(tokenizer.token_text(static_cast<std::int32_t>(id))));
  return {};
}

}  // namespace

Result<DraftPlan> plan_draft(const std::string& path, bool is_own, const std::string& model,
                             const ExecutorOptions& of_model) {
  ZRT_TRY(const auto weights, Weights::open(path));
  ZRT_TRY(const auto config, read_config(weights.metadata(), weights.infos()));
  if (is_own && config.n_mtp_layers == 0)
    return fail(
        {StatusCode::kInvalidArgument, "draft_model"},
        "[draft_model] {} has 0 blocks for multi-token prediction, so \"mtp\" is no draft model of it; 1 wanted", path);
  const bool is_mtp_block = config.n_mtp_layers > 0 && (is_own || weights.find("blk.0.attn_norm.weight") == nullptr);
  const bool has_own_file = !config.target_layers.empty() || config.reads_target_cache;
  ExecutorOptions options = of_model;
  options.part = is_mtp_block || has_own_file ? ModelPart::kDraftBlock : ModelPart::kModel;
  options.gives_features = false;
  options.feature_layers.clear();
  options.lender = has_own_file ? model : "";
  options.max_context =
      std::min(of_model.max_context > 0 ? of_model.max_context : kUsualContext, config.context_length);
  options.kv_pages = 0;
  options.kv_part = kKvPart;
  options.kv_type = nullptr;
  options.pooling.reset();
  options.state_checkpoints = options.state_guesses = 0;
  options.step_log.clear();
  options.on_progress = {};
  return DraftPlan{options, config.target_layers, config.reads_target_cache};
}

Status check_draft_model(const Executor& draft, const Executor& model, const Tokenizer& tokenizer) {
  const auto& file = draft.weights().path();
  const ExecutorInfo &info = draft.info(), &of_model = model.info();
  for (const auto* one : {&draft, &model}) {
    const ExecutorInfo& i = one->info();
    if (i.pooling != Pooling::kNone || i.needs_whole_texts)
      return fail({StatusCode::kUnavailable, "draft_model"},
                  "[draft_model] {} ({}) generates no tokens, so it neither is a draft model nor has one",
                  one->weights().path(), one->config().architecture);
  }
  if (info.state_bytes_per_slot > 0)
    return fail({StatusCode::kUnavailable, "draft_model"},
                "[draft_model] {} ({}) has recurrent state, {} bytes a slot, so it is no draft model; 0 bytes wanted",
                file, draft.config().architecture, info.state_bytes_per_slot);
  if (of_model.state_bytes_per_slot > 0 && of_model.state_guesses == 0)
    return fail({StatusCode::kUnavailable, "draft_model"},
                "[draft_model] {} ({}) has recurrent state, and takes 0 guessed tokens on {}, so it has no draft model",
                model.weights().path(), model.config().architecture, of_model.tier);
  if (info.reads.of_model != (info.reads.width > 0 ? of_model.feature_dim : 0))
    return fail({StatusCode::kUnavailable, "draft_model"},
                "[draft_model] {} ({}) is a block that reads {} features a token, and {} on {} gives {}", file,
                draft.config().architecture, info.reads.of_model, model.weights().path(), of_model.tier,
                of_model.feature_dim);
  if (info.max_slots < of_model.max_slots)
    return fail({StatusCode::kInvalidArgument, "draft_model"}, "[draft_model] {} has {} slots, its model {}", file,
                info.max_slots, of_model.max_slots);
  ZRT_TRY(const auto own, Tokenizer::from_metadata(draft.weights().metadata(), draft.config().vocab_size));
  const auto n_shared = std::min(own.n_vocab(), tokenizer.n_vocab());
  for (std::size_t i = 0; i < n_shared; ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (own.token_text(id) != tokenizer.token_text(id))
      return fail({StatusCode::kInvalidArgument, "draft_model"},
                  "[draft_model] token {} is {} in {} ({} tokens) and {} in {} ({} tokens); a draft model has the "
                  "vocabulary of its model",
                  id, gguf::quoted(own.token_text(id)), file, own.n_vocab(), gguf::quoted(tokenizer.token_text(id)),
                  model.weights().path(), tokenizer.n_vocab());
  }
  ZRT_CHECK_OK(check_unused(draft, own, n_shared, model));
  return check_unused(model, tokenizer, n_shared, draft);
}

DraftModel::DraftModel(std::unique_ptr<Executor> executor, std::vector<std::int32_t> vocabulary, std::uint32_t n_slots,
                       std::uint32_t n_vocab)
    : executor_(std::move(executor)),
      n_vocab_(std::min(n_vocab, executor_->config().vocab_size)),
      // Longer texts have another position encoding, for which the whole text would have to be computed again.
      context_(executor_->info().rope_limits.empty()
                   ? executor_->info().max_context
                   : std::min(executor_->info().max_context, executor_->info().rope_limits.front())),
      slots_(n_slots),
      cells_(make_cells(executor_->info(), n_slots)),
      guesses_(std::size_t{n_slots} * kMostGuesses),
      n_guesses_(n_slots),
      n_asked_(n_slots),
      reads_(executor_->info().reads),
      own_dim_(reads_.width > 0 ? executor_->info().feature_dim : 0),
      vocabulary_(std::move(vocabulary)),
      features_(n_slots, reads_.of_model),
      own_features_(std::size_t{n_slots} * own_dim_) {
  const std::size_t n_tokens = executor_->info().chunk_cap;
  for (Step& step : steps_) {
    step.input.token_ids.reserve(n_tokens);
    step.input.positions.reserve(n_tokens);
    step.input.slots.reserve(n_tokens);
    step.input.outputs.reserve(n_slots);
    step.features.reserve(n_tokens * reads_.width);
    step.output_slots.reserve(n_slots);
  }
  if (reads_features())
    steps_[0].input.on_features = [this](std::span<const float> rows) {
      const Step& step = steps_[0];  // steps with features do not run ahead
      const std::size_t dim = own_dim_;
      for (std::size_t i = 0; i < step.output_slots.size(); ++i)
        std::ranges::copy(rows.subspan(step.input.outputs[i].token_index * dim, dim),
                          own_features_.begin() + static_cast<std::ptrdiff_t>(step.output_slots[i] * dim));
    };
  output_.tokens.reserve(n_slots);
  depth_.reserve(n_slots);
  options_.reserve(n_slots);
  optional_.reserve(n_slots);
}

std::span<const std::int32_t> DraftModel::text_of_cells(const Wanted& w) const {
  return w.text.subspan(slots_[w.slot].base + (reads_features() ? 1 : 0));
}

// For a block that reads features: begins the slot's cache anew if the features of cells that it lacks are no longer
// kept. Returns false if features of the text's last tokens are not known.
bool DraftModel::place_cache(const Wanted& w) {
  Slot& slot = slots_[w.slot];
  const FeatureRows::Range known = features_.range(w.slot, w.request);
  const auto last = static_cast<std::uint32_t>(w.text.size()) - 1;  // the token whose features are not computed yet
  if (w.text.size() < 2 || known.end < last || known.first >= last) return false;
  slot.base = cells_->place(w.slot, slot.base, known, last);
  return true;
}

// Finds out how much of the text the slot's cache holds, and how many tokens may be guessed.
void DraftModel::look_at(Wanted& w) {
  Slot& slot = slots_[w.slot];
  if (slot.request != w.request) {
    slot.request = w.request;
    slot.n_checked = slot.n_known = slot.base = 0;
    cells_->keep(w.slot, 0);
  }
  if (reads_features() && !place_cache(w)) {
    w.n_missing = w.most = 0;
    return;
  }
  const auto text = text_of_cells(w);
  const auto size = static_cast<std::uint32_t>(text.size());
  const std::uint32_t n_held = std::min(cells_->n_held(w.slot), size);
  slot.n_checked = std::min(slot.n_checked, n_held);
  while (slot.n_checked < n_held && cells_->token(w.slot, slot.n_checked) == text[slot.n_checked]) ++slot.n_checked;
  // The last token is computed in any case, because the logits after it are needed.
  slot.n_checked = std::min(slot.n_checked, size - 1);
  cells_->keep(w.slot, slot.n_checked);
  w.n_missing = size - slot.n_checked;
  const auto is_known = [&](std::int32_t id) {
    return static_cast<std::uint32_t>(id) < executor_->config().vocab_size;
  };
  while (slot.n_known < w.text.size() && is_known(w.text[slot.n_known])) ++slot.n_known;
  const bool is_computable = slot.n_known == w.text.size() && size <= context_;
  w.most = is_computable && w.model_chance > 0 ? std::min(w.most, context_ - size + 1) : 0;
}

double DraftModel::catch_up_us(const Wanted& w) const {
  if (w.n_missing <= kNear) return 0;
  sched::StepSize size;
  size.add(cells_->n_held(w.slot), w.n_missing);
  return cost_.step_us(size);
}

bool DraftModel::choose(std::span<Wanted> wanted, std::uint32_t n_rows, std::uint32_t n_most,
                        const sched::RowPrice& price) {
  if (is_broken()) return false;
  for (Wanted& w : wanted) {
    look_at(w);
    w.depth = 0;
    w.is_trial = false;
  }
  n_rows += choose_fixed(wanted, n_rows, price.us(n_rows));
  if (price.is_known()) choose_best(wanted, n_rows, n_most, price);
  return std::ranges::any_of(wanted, [](const Wanted& w) { return w.depth > 0; });
}

// Gives the requests with a fixed number of guesses that number. Beside other requests they get only what fits the time
// that others may wait. Returns how many rows the guesses of these requests add to the step.
std::uint32_t DraftModel::choose_fixed(std::span<Wanted> wanted, std::uint32_t n_rows, double step_us) {
  const auto n_fixed = static_cast<std::uint32_t>(std::ranges::count_if(wanted, &Wanted::is_fixed));
  if (n_fixed == 0) return 0;
  std::uint32_t most = kMostGuesses;
  if (n_fixed < n_rows) {
    const double steps = (DraftDepth::longest_us(step_us) - step_us) / std::max(1.0, price_.us(n_fixed));
    most = price_.is_known() ? static_cast<std::uint32_t>(std::clamp<double>(steps, 1, kMostGuesses)) : kTried;
  }
  std::uint32_t n_added = 0;
  for (Wanted& w : wanted) {
    if (!w.is_fixed) continue;
    if (option_of(w).prefers_model()) w.depth = std::min(w.most, most);
    n_added += w.depth > 0 ? w.depth : w.n_own;
  }
  return n_added;
}

void DraftModel::choose_best(std::span<Wanted> wanted, std::uint32_t n_rows, std::uint32_t n_most,
                             const sched::RowPrice& price) {
  if (n_paused_ < pause_) {
    ++n_paused_;
    return;
  }
  options_.clear();
  optional_.clear();
  for (Wanted& w : wanted) {
    if (w.is_fixed) continue;
    options_.push_back(option_of(w));
    if (!price_.is_known()) options_.back().n_model = std::min(options_.back().n_model, kTried);
    optional_.push_back(&w);
  }
  if (options_.empty()) return;
  const auto choice = depth_.choose(options_, n_rows, n_most, {price, price_});
  n_paused_ = 0;
  pause_ = choice.pays() || options_.size() < kManyRequests ? 0 : std::min(2 * pause_ + 1, kLongestPause);
  if (!choice.pays()) return choose_trial(wanted, n_rows, price);
  for (std::size_t i = 0; i < options_.size(); ++i) {
    Wanted& w = *optional_[i];
    // Computing a long text must be repaid by the tokens that are still to come.
    if (catch_up_us(w) <= w.n_to_come * (choice.us_without - choice.us_with)) w.depth = options_[i].depth;
  }
}

void DraftModel::choose_trial(std::span<Wanted> wanted, std::uint32_t n_rows, const sched::RowPrice& price) {
  Wanted* nearest = nullptr;
  for (Wanted& w : wanted)
    if (!w.is_fixed && w.most > 0 && (nearest == nullptr || w.n_missing < nearest->n_missing)) nearest = &w;
  if (nearest == nullptr) return;
  const std::uint32_t n = std::min(kTried, nearest->most);
  const double us = n * price_.us(1) + price.us(n_rows + n) - price.us(n_rows) + catch_up_us(*nearest);
  if (us >= kTriesCost * us_without_) return;
  nearest->depth = n;
  nearest->is_trial = true;
}

// Adds the row of features of the token that is added next.
void DraftModel::add_features(Step& step, std::span<const float> features, std::size_t at) {
  step.features.resize(step.features.size() + reads_.width);
  std::ranges::copy(features, step.features.end() - static_cast<std::ptrdiff_t>(reads_.width - at));
}

void DraftModel::add_token(Step& step, std::uint32_t slot, std::int32_t token) {
  const std::uint32_t position = cells_->add(slot, token);
  step.input.token_ids.push_back(token);
  step.input.positions.push_back(static_cast<std::int32_t>(position));
  step.input.slots.push_back(static_cast<std::int32_t>(slot));
  step.size.add(position, 1);
}

// Asks for the most likely token after the one that was added last.
void DraftModel::add_output(Step& step, std::uint32_t slot) {
  OutputRow& row = step.input.outputs.emplace_back();
  row.token_index = static_cast<std::uint32_t>(step.input.token_ids.size() - 1);
  row.position = static_cast<std::uint32_t>(step.input.positions.back()) + 1;
  row.wants_logits = false;
  step.output_slots.push_back(slot);
  ++n_asked_[slot];
}

// Adds the missing tokens of the texts to the step: first those of which few are missing, then parts of the others.
// Returns the most tokens that a slot has in the step.
std::uint32_t DraftModel::catch_up(Step& step, std::span<Wanted> wanted, double step_us) {
  const double part_us = std::max(kPartUs, kPartOfStep * step_us);
  std::uint32_t longest = 0;
  for (const bool is_far : {false, true})
    for (Wanted& w : wanted) {
      if (w.depth == 0 || (w.n_missing > kNear) != is_far) continue;
      Slot& slot = slots_[w.slot];
      const std::uint32_t n_held = cells_->n_held(w.slot);
      std::uint32_t n =
          std::min(w.n_missing, executor_->info().chunk_cap - static_cast<std::uint32_t>(step.input.token_ids.size()));
      if (is_far) {
        const std::uint32_t fits = cost_.is_known() ? cost_.tokens_within(part_us, step.size, n_held) : kFirstPart;
        n = std::min(n, step.input.token_ids.empty() ? std::max(fits, kFirstPart) : fits);
      }
      // Another request may have taken the slot's pages since choose() looked at it.
      if (n_held + w.n_missing != text_of_cells(w).size()) continue;
      if (n == 0 || !cells_->make_room(w.slot, n_held + n)) continue;
      for (std::uint32_t i = n_held; i < n_held + n; ++i) {
        if (reads_features()) add_features(step, features_.row(w.slot, slot.base + i), 0);
        add_token(step, w.slot, text_of_cells(w)[i]);
      }
      slot.n_checked = slot.n_true = cells_->n_held(w.slot);
      if (n == w.n_missing) add_output(step, w.slot);
      longest = std::max(longest, n);
    }
  return longest;
}

// Adds the last guess of each text that goes on, as a token, and asks for the next one.
void DraftModel::add_guesses(Step& step, std::span<Wanted> wanted) {
  const bool is_ahead = executor_->info().runs_ahead;
  const std::uint32_t n_known = step.number - (is_ahead ? 1 : 0);  // guesses of each text that are read by now
  for (const Wanted& w : wanted) {
    if (n_asked_[w.slot] < step.number || n_guesses_[w.slot] < n_known || w.depth <= step.number) continue;
    if (!cells_->make_room(w.slot, cells_->n_held(w.slot) + 1)) continue;
    const std::size_t dim = own_dim_;
    if (reads_features()) add_features(step, std::span(own_features_).subspan(w.slot * dim, dim), reads_.own_at);
    add_token(step, w.slot, is_ahead ? kLastPick : guesses_[std::size_t{w.slot} * kMostGuesses + step.number - 1]);
    add_output(step, w.slot);
  }
}

bool DraftModel::end_of_guesses(const Step& step, const Error& error) {
  ++n_failed_;
  log().warn("[draft_model] a step of {} tokens failed, so {} guesses no more; answers go on without it: {}",
             step.input.token_ids.size(), executor_->config().name, error.message);
  return false;
}

bool DraftModel::begin(Step& step) {
  step.input.features = step.features;
  step.input.page_tables = cells_->page_tables();
  step.began_us = now_us();
  ++n_steps_;
  const auto status = executor_->begin(step.input);
  return status ? true : end_of_guesses(step, status.error());
}

// Waits for the step and appends its tokens to the guesses. Returns false if it failed.
bool DraftModel::finish(Step& step) {
  output_.tokens.clear();
  if (const auto status = executor_->finish(output_); !status) return end_of_guesses(step, status.error());
  // A step that began while another one ran takes the time since that one ended.
  const auto now = now_us();
  const auto us = static_cast<double>(now - std::max(step.began_us, finished_us_));
  finished_us_ = now;
  cost_.observe(step.size, us);
  if (step.is_decode) price_.observe(static_cast<std::uint32_t>(step.output_slots.size()), us);
  for (std::size_t i = 0; i < step.output_slots.size(); ++i) {
    const std::uint32_t slot = step.output_slots[i];
    const std::int32_t row = output_.tokens[i];
    const std::int32_t token = vocabulary_.empty() || row < 0 ? row : vocabulary_[static_cast<std::size_t>(row)];
    const bool ends = token < 0 || static_cast<std::uint32_t>(token) >= n_vocab_;
    if (ends || n_guesses_[slot] < step.number) continue;
    guesses_[std::size_t{slot} * kMostGuesses + n_guesses_[slot]++] = token;
  }
  return true;
}

// Gives the cells of a step their tokens, which the step before it has picked.
void DraftModel::name_cells(const Step& step) {
  for (std::size_t i = 0; i < step.output_slots.size(); ++i) {
    const std::uint32_t slot = step.output_slots[i];
    if (n_guesses_[slot] < step.number) continue;
    cells_->name(slot, static_cast<std::uint32_t>(step.input.positions[i]),
                 guesses_[std::size_t{slot} * kMostGuesses + step.number - 1]);
  }
}

// Runs the steps of a call of guess(). Returns false if one failed.
bool DraftModel::run_steps(std::span<Wanted> wanted, double step_us) {
  const bool is_ahead = executor_->info().runs_ahead;
  Step* running = nullptr;
  bool is_well = true;
  for (std::uint32_t n = 0; is_well; ++n) {
    Step& step = steps_[is_ahead ? n % 2 : 0];
    step.input.clear();
    step.features.clear();
    step.output_slots.clear();
    step.size = {};
    step.number = n;
    // After a guess that was right to its end, two tokens are missing.
    step.is_decode = n > 0 || catch_up(step, wanted, step_us) <= 2;
    if (n > 0) add_guesses(step, wanted);
    if (step.input.token_ids.empty()) break;
    is_well = begin(step);
    Step* const begun = is_well ? &step : nullptr;
    if (running != nullptr) is_well = finish(*running) && is_well;
    if (running != nullptr && begun != nullptr) name_cells(*begun);
    running = begun;
    if (running != nullptr && !is_ahead) is_well = finish(*std::exchange(running, nullptr));
  }
  if (running != nullptr) is_well = finish(*running) && is_well;
  return is_well;
}

double DraftModel::guess(std::span<Wanted> wanted, double step_us, const PageTables& of_model) {
  const auto began = now_us();
  cells_->begin_call();
  cells_->use_model_pages(of_model);
  for (const Wanted& w : wanted) n_guesses_[w.slot] = n_asked_[w.slot] = 0;
  if (!run_steps(wanted, step_us))
    for (const Wanted& w : wanted) n_guesses_[w.slot] = 0;
  if (reads_features())
    for (const Wanted& w : wanted) cells_->keep(w.slot, slots_[w.slot].n_true);
  for (Wanted& w : wanted)
    w.guess = std::span(guesses_).subspan(std::size_t{w.slot} * kMostGuesses, n_guesses_[w.slot]);
  const auto us = static_cast<double>(now_us() - began);
  const bool is_trial = std::ranges::any_of(wanted, &Wanted::is_trial);
  us_without_ = is_trial ? std::max(0.0, us_without_ - us / kTriesCost) : 0;
  return us;
}

}  // namespace zinc_rt
