#include "engine/model.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "base/thread_pool.h"
#include "engine/card.h"
#include "engine/draft_model.h"
#include "engine/draft_vocabulary.h"
#include "engine/options.h"

namespace zinc_rt {

namespace {

// The draft model on a device: its plan, its file, and its executor once it is open.
struct Draft {
  DraftPlan plan;
  std::string file;
  std::unique_ptr<Executor> executor;
};

Status open_draft(Draft& draft) {
  auto opened = open_executor(draft.file, draft.plan.options);
  if (!opened) return std::unexpected(about("draft_model", std::move(opened).error()));
  draft.executor = std::move(*opened);
  return {};
}

// Plans the draft model on each device, if the options name one and allow guesses. path: the model's file.
Result<std::vector<Draft>> plan_drafts(const std::string& path, const EngineOptions& chosen,
                                       const std::vector<ExecutorOptions>& wanted) {
  std::vector<Draft> drafts;
  if (chosen.draft_model.empty()) return drafts;
  if (chosen.speculate == "off") {
    log().info("speculate is off, so the draft model {} is not loaded", chosen.draft_model);
    return drafts;
  }
  const bool is_own = chosen.draft_model == kOwnMtpBlock;
  const std::string& file = is_own ? path : chosen.draft_model;
  for (const ExecutorOptions& one : wanted) {
    auto plan = plan_draft(file, is_own, path, one);
    if (!plan) return std::unexpected(about("draft_model", std::move(plan).error()));
    drafts.push_back({std::move(*plan), file, nullptr});
  }
  return drafts;
}

}  // namespace

Result<std::shared_ptr<Model>> Model::open(const std::string& path, const EngineOptions& options) {
  ZRT_TRY(auto wanted, replica_options(options));
  ZRT_TRY(const auto chosen, with_environment(options));
  ZRT_TRY(auto planned, plan_drafts(path, chosen, wanted));
  // The draft model is opened first, so that the model's KV pages get what it leaves of the memory. One that reads these
  // pages is opened behind its model.
  for (Draft& draft : planned)
    if (!draft.plan.reads_model_pages) ZRT_CHECK_OK(open_draft(draft));
  std::vector<std::unique_ptr<Executor>> executors, drafts;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!planned.empty()) {
      wanted[i].gives_features = planned[i].plan.reads_features();
      wanted[i].feature_layers = planned[i].plan.feature_layers;
    }
    ZRT_TRY(auto executor, open_executor(path, wanted[i]));
    executors.push_back(std::move(executor));
  }
  for (std::size_t i = 0; i < planned.size(); ++i) {
    if (planned[i].executor == nullptr) {
      planned[i].plan.options.model = executors[i].get();
      planned[i].plan.options.tier = executors[i]->info().tier;
      ZRT_CHECK_OK(open_draft(planned[i]));
    }
    drafts.push_back(std::move(planned[i].executor));
  }
  const ExecutorInfo& info = executors.front()->info();
  if (wanted.front().arithmetic != info.arithmetic)
    log().info("arithmetic {} was asked for; tier {} has only {} kernels here, which fast allows",
               to_string(wanted.front().arithmetic), info.tier, to_string(info.arithmetic));
  return make(std::move(executors), options, std::move(drafts));
}

Result<std::shared_ptr<Model>> Model::make(std::vector<std::unique_ptr<Executor>> executors,
                                           const EngineOptions& options,
                                           std::vector<std::unique_ptr<Executor>> drafts) {
  if (executors.empty() || executors.size() != options.devices.size())
    return fail(StatusCode::kInvalidArgument, "[engine] {} executors for {} devices", executors.size(),
                options.devices.size());
  if (!drafts.empty() && drafts.size() != executors.size())
    return fail(StatusCode::kInvalidArgument, "[engine] {} executors of a draft model for {} devices", drafts.size(),
                executors.size());
  const Executor& first = *executors.front();
  auto model = std::make_shared<Model>();
  model->options_ = options;
  ZRT_TRY(model->prefill_mode_, parse_prefill_mode());
  ZRT_TRY(const auto chosen, with_environment(options));
  model->n_threads_ = threads_of(chosen);
  const auto speculation = speculation_of(chosen);
  if (!speculation)
    return fail({StatusCode::kInvalidArgument, "speculate"}, "[engine] speculate \"{}\" is not auto, off or 1 to {}",
                chosen.speculate, kMostGuesses);
  model->speculation_ = *speculation;
  model->info_ = first.info();
  // Without saved inputs, a wrong guess would stay in the recurrent state.
  if (model->info_.state_bytes_per_slot > 0)
    model->speculation_.most = std::min(model->speculation_.most, model->info_.state_guesses);
  model->config_ = first.config();
  if (model->info_.needs_whole_texts && model->prefill_mode_ != PrefillMode::kBatched)
    return fail(StatusCode::kInvalidArgument,
                "[engine] ZINC_RT_BATCHED_PREFILL={} is not there for {}, which computes a text in one step; 1 is",
                options::get("ZINC_RT_BATCHED_PREFILL"), model->config_.architecture);
  const auto& metadata = first.weights().metadata();
  ZRT_TRY(model->tokenizer_, Tokenizer::from_metadata(metadata, model->config_.vocab_size));
  const auto n_vocab = static_cast<std::int32_t>(model->tokenizer_->n_vocab());
  if (model->tokenizer_->n_vocab() != model->config_.vocab_size)
    log().warn("the vocabulary has {} tokens, the model {} rows", n_vocab, model->config_.vocab_size);
  for (std::int32_t id = 0; id < n_vocab; ++id)
    if (model->tokenizer_->is_end_of_generation(id)) model->end_tokens_.push_back(id);
  for (std::size_t i = 0; i < drafts.size(); ++i)
    ZRT_CHECK_OK(check_draft_model(*drafts[i], *executors[i], *model->tokenizer_));
  model->templates_ = ChatTemplates::read(metadata);
  ZRT_CHECK_OK(model->probe_templates());
  model->card_ = make_model_card(first, *model->tokenizer_);
  if (const auto* calls = model->formats_.calls()) model->card_.tool_format = calls->name;
  model->card_.reasoning_format = model->formats_.reasoning()->name;
  model->card_.devices = options.devices;
  model->memory_ = make_model_memory(first.plan(), first.info());
  if (!drafts.empty()) add_draft_model(*drafts.front(), model->card_, model->memory_);
  for (std::size_t i = 0; i < executors.size(); ++i) {
    const ExecutorInfo& one = executors[i]->info();
    model->info_.n_pages = std::min(model->info_.n_pages, one.n_pages);
    model->info_.max_slots = std::min(model->info_.max_slots, one.max_slots);
    model->info_.max_context = std::min(model->info_.max_context, one.max_context);
    model->memory_.devices.push_back({.index = options.devices[i],
                                      .name = one.device,
                                      .max_slots = one.max_slots,
                                      .kv_pages = one.n_pages,
                                      .allocated_bytes = executors[i]->plan().allocated_bytes(),
                                      .mapped_bytes = executors[i]->plan().mapped_bytes()});
    std::unique_ptr<DraftModel> draft;
    if (!drafts.empty()) {
      model->memory_.devices.back().allocated_bytes += drafts[i]->plan().allocated_bytes();
      model->memory_.devices.back().mapped_bytes += drafts[i]->plan().mapped_bytes();
      ZRT_TRY(auto vocabulary, draft_vocabulary(drafts[i]->weights(), drafts[i]->config().vocab_size));
      draft = std::make_unique<DraftModel>(std::move(drafts[i]), std::move(vocabulary), one.max_slots,
                                           model->config_.vocab_size);
    }
    model->replicas_.push_back(
        std::make_unique<Replica>(options.devices[i], std::move(executors[i]), std::move(draft)));
  }
  return model;
}

Status Model::join(std::string name, const Joined& engine) {
  name_ = std::move(name);
  sched::Options o;
  o.prefill_cap = prefill_mode_ == PrefillMode::kTokenByToken ? 1 : info_.chunk_cap;
  o.standard_gap = sched::Micros{1000} * options_.standard_gap_ms;
  o.queue_cap = options_.queue_cap;
  o.needs_whole_texts = info_.needs_whole_texts;
  o.runs_ahead = info_.runs_ahead;
  o.has_logprobs = info_.has_logprobs;
  o.prefix_cache = options_.prefix_cache && !info_.needs_whole_texts;
  // If texts are computed whole, recurrent state begins and ends within one step. So no slot has state that must
  // survive a step.
  o.is_recurrent = info_.state_bytes_per_slot > 0 && !info_.needs_whole_texts;
  o.hash_key = engine.key;
  const auto all_shares = replicas_.size() > 1 ? std::make_shared<sched::Shares>(o.turn) : nullptr;
  for (const auto& replica : replicas_) {
    ZRT_TRY(StepLoop* const loop, engine.loop_for(replica->device));
    o.model_id = engine.next_id.fetch_add(1);
    o.n_slots = replica->info.max_slots;
    o.n_pages = replica->info.n_pages;
    o.max_context = replica->info.max_context;
    o.chunk_cap = replica->info.chunk_cap;
    o.n_checkpoints = o.is_recurrent ? replica->info.n_state_checkpoints : 0;
    if (o.is_recurrent) o.most_drafts = replica->info.state_guesses;
    o.rope_limits = replica->info.rope_limits;
    replica->join(*loop, o, engine.tenants, all_shares, engine.timeline);
  }
  return {};
}

std::uint64_t Model::reservable_pages() const {
  return static_cast<std::uint64_t>((1 - sched::Options{}.prefix_part) * info_.n_pages);
}

Result<std::shared_ptr<const grammar::Vocabulary>> Model::vocabulary() {
  const std::lock_guard lock(vocabulary_mutex_);
  if (vocabulary_ == nullptr) {
    ZRT_TRY(vocabulary_, grammar::Vocabulary::make(*tokenizer_));
  }
  return vocabulary_;
}

}  // namespace zinc_rt
