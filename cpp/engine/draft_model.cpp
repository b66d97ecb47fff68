#include "engine/draft_model.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "engine/clock.h"
#include "mem/page_pool.h"
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

Result<ExecutorOptions> draft_options(const std::string& path, bool is_own, const std::string& model,
                                      const ExecutorOptions& of_model) {
  ZRT_TRY(const auto weights, Weights::open(path));
  ZRT_TRY(const auto config, read_config(weights.metadata(), weights.infos()));
  if (is_own && config.n_mtp_layers == 0)
    return fail(
        {StatusCode::kInvalidArgument, "draft_model"},
        "[draft_model] {} has 0 blocks for multi-token prediction, so \"mtp\" is no draft model of it; 1 wanted", path);
  const bool is_mtp_block = config.n_mtp_layers > 0 && (is_own || weights.find("blk.0.attn_norm.weight") == nullptr);
  const bool reads_layers = !config.target_layers.empty();
  ExecutorOptions options = of_model;
  options.part = is_mtp_block || reads_layers ? ModelPart::kDraftBlock : ModelPart::kModel;
  options.gives_features = false;
  options.feature_layers.clear();
  options.lender = reads_layers ? model : "";
  options.max_context =
      std::min(of_model.max_context > 0 ? of_model.max_context : kUsualContext, config.context_length);
  options.kv_pages = 0;
  options.kv_part = kKvPart;
  options.kv_type = nullptr;
  options.pooling.reset();
  options.state_checkpoints = options.state_guesses = 0;
  options.run_ahead = false;
  options.step_log.clear();
  options.on_progress = {};
  return options;
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
      width_(mem::pages_for(executor_->info().max_context)),
      tables_(std::size_t{n_slots} * width_),
      counts_(n_slots),
      held_(std::size_t{executor_->info().n_pages} * kPageTokens),
      guesses_(std::size_t{n_slots} * kMostGuesses),
      n_guesses_(n_slots),
      reads_(executor_->info().reads),
      own_dim_(reads_.width > 0 ? executor_->info().feature_dim : 0),
      vocabulary_(std::move(vocabulary)),
      features_(n_slots, reads_.of_model),
      own_features_(std::size_t{n_slots} * own_dim_) {
  for (std::uint32_t page = executor_->info().n_pages; page-- > 0;) free_pages_.push_back(page);
  const std::size_t n_tokens = executor_->info().chunk_cap;
  input_.token_ids.reserve(n_tokens);
  input_.positions.reserve(n_tokens);
  input_.slots.reserve(n_tokens);
  input_.outputs.reserve(n_slots);
  input_.page_tables = {tables_, width_, counts_};
  step_features_.reserve(n_tokens * reads_.width);
  if (reads_features())
    input_.on_features = [this](std::span<const float> rows) {
      const std::size_t dim = own_dim_;
      for (std::size_t i = 0; i < output_slots_.size(); ++i)
        std::ranges::copy(rows.subspan(input_.outputs[i].token_index * dim, dim),
                          own_features_.begin() + static_cast<std::ptrdiff_t>(output_slots_[i] * dim));
    };
  output_.tokens.reserve(n_slots);
  output_slots_.reserve(n_slots);
  depth_.reserve(n_slots);
  options_.reserve(n_slots);
  optional_.reserve(n_slots);
}

std::int32_t& DraftModel::held(std::uint32_t slot, std::uint32_t i) {
  return held_[std::size_t{tables_[slot * width_ + i / kPageTokens]} * kPageTokens + i % kPageTokens];
}

std::span<const std::int32_t> DraftModel::cells(const Wanted& w) const {
  return w.text.subspan(slots_[w.slot].base + (reads_features() ? 1 : 0));
}

// For a block that reads features: begins the slot's cache anew if the features of cells that it lacks are no longer
// kept. Returns false if features of the text's last tokens are not known.
bool DraftModel::place_cache(const Wanted& w) {
  Slot& slot = slots_[w.slot];
  const FeatureRows::Range known = features_.range(w.slot, w.request);
  const auto last = static_cast<std::uint32_t>(w.text.size()) - 1;  // the token whose features are not computed yet
  if (w.text.size() < 2 || known.end < last || known.first >= last) return false;
  if (slot.base + slot.n_held >= known.first) return true;
  slot.base = known.first;
  slot.n_held = slot.n_checked = 0;
  return true;
}

// Finds out how much of the text the slot's cache holds, and how many tokens may be guessed.
void DraftModel::look_at(Wanted& w) {
  Slot& slot = slots_[w.slot];
  if (slot.request != w.request) {
    slot.request = w.request;
    slot.n_held = slot.n_checked = slot.n_known = slot.base = 0;
  }
  if (reads_features() && !place_cache(w)) {
    w.n_missing = w.most = 0;
    return;
  }
  const auto text = cells(w);
  const auto size = static_cast<std::uint32_t>(text.size());
  while (slot.n_checked < std::min(slot.n_held, size) && held(w.slot, slot.n_checked) == text[slot.n_checked])
    ++slot.n_checked;
  // The last token is computed in any case, because the logits after it are needed.
  slot.n_checked = std::min(slot.n_checked, size - 1);
  slot.n_held = slot.n_checked;
  w.n_missing = size - slot.n_held;
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
  size.add(slots_[w.slot].n_held, w.n_missing);
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

void DraftModel::give_back_pages(Slot& slot) {
  const auto i = static_cast<std::size_t>(&slot - slots_.data());
  for (; slot.n_pages > 0; --slot.n_pages) free_pages_.push_back(tables_[i * width_ + slot.n_pages - 1]);
  counts_[i] = slot.n_held = slot.n_checked = 0;
}

// Takes pages until the slot has room for n_tokens. If none is free, takes those of the slot that was used longest ago.
// Returns false if all other slots were used in this call of guess().
bool DraftModel::make_room(std::uint32_t slot, std::uint32_t n_tokens) {
  Slot& s = slots_[slot];
  s.used_in = n_calls_;
  while (s.n_pages < mem::pages_for(n_tokens)) {
    if (free_pages_.empty()) {
      Slot* oldest = nullptr;
      for (Slot& other : slots_)
        if (other.n_pages > 0 && other.used_in < n_calls_ && (oldest == nullptr || other.used_in < oldest->used_in))
          oldest = &other;
      if (oldest == nullptr) return false;
      give_back_pages(*oldest);
    }
    tables_[slot * width_ + s.n_pages] = free_pages_.back();
    free_pages_.pop_back();
    counts_[slot] = ++s.n_pages;
  }
  return true;
}

// Adds the row of features of the token that is added next.
void DraftModel::add_features(std::span<const float> features, std::size_t at) {
  step_features_.resize(step_features_.size() + reads_.width);
  std::ranges::copy(features, step_features_.end() - static_cast<std::ptrdiff_t>(reads_.width - at));
}

void DraftModel::add_token(std::uint32_t slot, std::int32_t token) {
  Slot& s = slots_[slot];
  input_.token_ids.push_back(token);
  input_.positions.push_back(static_cast<std::int32_t>(s.n_held));
  input_.slots.push_back(static_cast<std::int32_t>(slot));
  size_.add(s.n_held, 1);
  held(slot, s.n_held++) = token;
}

// Asks for the most likely token after the one that was added last.
void DraftModel::add_output(std::uint32_t slot) {
  OutputRow& row = input_.outputs.emplace_back();
  row.token_index = static_cast<std::uint32_t>(input_.token_ids.size() - 1);
  row.position = slots_[slot].n_held;
  row.wants_logits = false;
  output_slots_.push_back(slot);
}

// Adds the missing tokens of the texts to the step: first those of which few are missing, then parts of the others.
// Returns the most tokens that a slot has in the step.
std::uint32_t DraftModel::catch_up(std::span<Wanted> wanted, double step_us) {
  const double part_us = std::max(kPartUs, kPartOfStep * step_us);
  std::uint32_t longest = 0;
  for (const bool is_far : {false, true})
    for (Wanted& w : wanted) {
      if (w.depth == 0 || (w.n_missing > kNear) != is_far) continue;
      Slot& slot = slots_[w.slot];
      std::uint32_t n =
          std::min(w.n_missing, executor_->info().chunk_cap - static_cast<std::uint32_t>(input_.token_ids.size()));
      if (is_far) {
        const std::uint32_t fits = cost_.is_known() ? cost_.tokens_within(part_us, size_, slot.n_held) : kFirstPart;
        n = std::min(n, input_.token_ids.empty() ? std::max(fits, kFirstPart) : fits);
      }
      // Another request may have taken the slot's pages since choose() looked at it.
      if (slot.n_held + w.n_missing != cells(w).size()) continue;
      if (n == 0 || !make_room(w.slot, slot.n_held + n)) continue;
      for (std::uint32_t i = 0; i < n; ++i) {
        if (reads_features()) add_features(features_.row(w.slot, slot.base + slot.n_held), 0);
        add_token(w.slot, cells(w)[slot.n_held]);
      }
      slot.n_checked = slot.n_true = slot.n_held;
      if (n == w.n_missing) add_output(w.slot);
      longest = std::max(longest, n);
    }
  return longest;
}

// Runs the step and appends its tokens to the guesses. Returns false if it failed.
bool DraftModel::run(bool is_decode) {
  const auto began = now_us();
  ++n_steps_;
  if (const auto status = executor_->step(input_, output_); !status) {
    ++n_failed_;
    log().warn("[draft_model] a step of {} tokens failed, so {} guesses no more; answers go on without it: {}",
               input_.token_ids.size(), executor_->config().name, status.error().message);
    return false;
  }
  const auto us = static_cast<double>(now_us() - began);
  cost_.observe(size_, us);
  if (is_decode) price_.observe(static_cast<std::uint32_t>(output_slots_.size()), us);
  for (std::size_t i = 0; i < output_slots_.size(); ++i) {
    const std::uint32_t slot = output_slots_[i];
    const std::int32_t row = output_.tokens[i];
    const std::int32_t token = vocabulary_.empty() || row < 0 ? row : vocabulary_[static_cast<std::size_t>(row)];
    if (token < 0 || static_cast<std::uint32_t>(token) >= n_vocab_) continue;  // the guess ends
    guesses_[std::size_t{slot} * kMostGuesses + n_guesses_[slot]++] = token;
  }
  return true;
}

double DraftModel::guess(std::span<Wanted> wanted, double step_us) {
  const auto began = now_us();
  ++n_calls_;
  for (const Wanted& w : wanted) n_guesses_[w.slot] = 0;
  for (std::uint32_t n = 0;; ++n) {
    input_.token_ids.clear();
    input_.positions.clear();
    input_.slots.clear();
    input_.outputs.clear();
    step_features_.clear();
    output_slots_.clear();
    size_ = {};
    const std::uint32_t most_tokens = n == 0 ? catch_up(wanted, step_us) : 1;
    for (const Wanted& w : wanted) {
      if (n == 0 || n_guesses_[w.slot] < n || w.depth <= n || !make_room(w.slot, slots_[w.slot].n_held + 1)) continue;
      const std::size_t dim = own_dim_;
      if (reads_features()) add_features(std::span(own_features_).subspan(w.slot * dim, dim), reads_.own_at);
      add_token(w.slot, guesses_[std::size_t{w.slot} * kMostGuesses + n - 1]);
      add_output(w.slot);
    }
    if (input_.token_ids.empty()) break;
    input_.features = step_features_;
    // After a guess that was right to its end, two tokens are missing.
    if (run(most_tokens <= 2)) continue;
    for (Wanted& w : wanted) n_guesses_[w.slot] = 0;
    break;
  }
  if (reads_features())
    for (const Wanted& w : wanted) {
      Slot& slot = slots_[w.slot];
      slot.n_held = std::min(slot.n_held, slot.n_true);
      slot.n_checked = std::min(slot.n_checked, slot.n_held);
    }
  for (Wanted& w : wanted)
    w.guess = std::span(guesses_).subspan(std::size_t{w.slot} * kMostGuesses, n_guesses_[w.slot]);
  const auto us = static_cast<double>(now_us() - began);
  const bool is_trial = std::ranges::any_of(wanted, &Wanted::is_trial);
  us_without_ = is_trial ? std::max(0.0, us_without_ - us / kTriesCost) : 0;
  return us;
}

}  // namespace zinc_rt
