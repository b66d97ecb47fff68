#include "sched/batch_planner.h"

#include <algorithm>
#include <cmath>

namespace zinc_rt::sched {
namespace {

// By how much prompts may lengthen a step in which no class that is more urgent than theirs has work. The numbers are
// per class: the most urgent class that decodes in the step selects them. The larger of two limits holds:
//   - A time in us. For batch it also holds while nobody decodes, because the next request has to wait for the step.
//     For standard it is kOfGap of the gap that streams are promised (Options::standard_gap).
//   - A multiple of the time that decoding alone takes: kStepGrowth x n / (n + 1) beside n decoding slots. With many
//     slots, admitted prompts get at least half of the machine. With few slots, most of a step's time goes into reading
//     the weights, and whatever prompts add delays each slot.
constexpr double kInteractiveUs = 10'000, kBatchUs = 250'000;
constexpr double kStepGrowth[kQosCount] = {1.0, 2.0, 3.0};
// The factors by which prompts may lengthen a step in which a more urgent class decodes or computes its prompt. For
// prompts of the next lower class, a fixed time in us is used instead if it is longer (below standard: standard's gap).
// With more time, more tokens share the fixed cost of having prompts in a step.
constexpr double kStretch[kQosCount] = {1.1, 2.0, 1.0};
constexpr double kStandardBesideInteractiveUs = 20'000;
// If a step takes more than this many times what was expected, the estimate was wrong, and observe() allows fewer
// prompt tokens.
constexpr double kLate = 1.5;
// A chunk has at least this many tokens, unless a class above batch decodes. Smaller chunks waste time, because each
// reads all weights.
constexpr std::uint32_t kLeastChunk = 32;
// Beside decoding slots more urgent than batch, a step may have this many prompt tokens until such a step was measured.
constexpr std::uint32_t kFirstChunk = 8;

std::size_t index(Qos qos) {
  return static_cast<std::size_t>(qos);
}

// Adds the output row that follows token i of the request. token_index is the index of that token among the step's
// tokens.
PlanRow& add_row(const Request& r, std::uint32_t i, std::size_t token_index, StepPlan& plan) {
  PlanRow& row = plan.rows.emplace_back();
  row.output.token_index = static_cast<std::uint32_t>(token_index);
  row.output.position = i + 1;
  row.request = r.id;
  row.user = r.params.user;
  row.text = r.tokens.with_guess().ids().first(i + 1);
  return row;
}

void add_pick(const Request& r, std::uint32_t i, std::size_t token_index, StepPlan& plan) {
  PlanRow& row = add_row(r, i, token_index, plan);
  row.n_guessed = i + 1 - std::min(i + 1, r.tokens.size());
  OutputRow& output = row.output;
  output.sampling = r.params.sampling;
  if (output.sampling.has_penalties()) {
    output.history = row.text;
    output.n_prompt = r.n_prompt;
  }
  output.bias = r.params.bias;
  if (r.bans_stops(output.position)) output.banned = r.params.stop_tokens;
  output.is_masked = r.params.is_masked;
  output.is_processed = r.params.is_processed;
  output.wants_logits = r.params.wants_logits;
  output.n_logprobs = r.params.n_logprobs;
}

// Adds an item with tokens [n_done, n_done + n) of a request and the n_drafts guessed tokens behind them.
void add_item(const Request& r, std::uint32_t n, std::uint32_t n_drafts, bool is_decode, StepPlan& plan) {
  PlanItem& item = plan.items.emplace_back();
  item.slot = r.slot;
  item.begin = r.n_done;
  item.n = n + n_drafts;
  item.n_drafts = n_drafts;
  item.n_replayed = r.n_unapplied;
  item.is_decode = is_decode;
  item.ends_text = n == r.n_left();
  item.n_picks = item.ends_text && r.picks() ? 1 + n_drafts : 0;
  item.qos = r.params.qos;
  item.second_text = r.params.second_text;
  item.request = r.id;
  item.user = r.params.user;
  plan.tokens.append(r.tokens.with_guess().part(item.begin, item.n));
  for (std::uint32_t left = item.n_picks; left > 0; --left)
    add_pick(r, item.begin + item.n - left, plan.tokens.size() - left, plan);
  plan.n_tokens += item.n;
  plan.n_drafts += n_drafts;
  plan.n_decode += is_decode ? 1 : 0;
  plan.n_outputs += item.n_picks;
}

}  // namespace

BatchPlanner::BatchPlanner(const Options& options, const TenantBook& tenants, const SlotTable& slots)
    : options_(options), tenants_(tenants), slots_(slots) {
  tenant_rows_.reserve(options.n_slots);
  drafts_.reserve(options.n_slots);
  order_.reserve(std::size_t{options.n_slots} * kMostDrafts);
}

void BatchPlanner::add_decodes(std::span<Request* const> decoding, std::uint64_t step, StepPlan& plan) {
  for (Request* r : decoding) {
    r->decoded_in = step;
    add_item(*r, 1, r->tokens.n_guessed(), true, plan);
  }
}

void BatchPlanner::add_ahead(std::span<Request* const> decoding, std::uint64_t step, StepPlan& plan) {
  n_paused_ = std::min(n_paused_ + 1, pause_);
  plan.n_tokens = plan.n_decode = plan.n_outputs = static_cast<std::uint32_t>(decoding.size());
  plan.n_drafts = 0;
  for (Request* r : decoding) {
    r->decoded_in = step;
    PlanItem& item = plan.items.emplace_back();
    item.slot = r->slot;
    item.begin = r->n_done + 1;
    item.n = item.n_picks = 1;
    item.is_decode = item.ends_text = true;
    item.qos = r->params.qos;
    item.request = r->id;
    item.user = r->params.user;
    PlanRow& row = plan.rows.emplace_back();
    row.output.token_index = plan.tokens.size();
    row.output.position = item.begin + 1;
    row.output.sampling = r->params.sampling;
    row.output.wants_logits = false;
    row.output.n_logprobs = r->params.n_logprobs;
    row.request = r->id;
    row.user = r->params.user;
    plan.tokens.push_back(kLastPick);
  }
}

void BatchPlanner::add_chunk(const Request& r, std::uint32_t end, StepPlan& plan) {
  add_item(r, end - r.n_done, 0, false, plan);
}

void BatchPlanner::add_scores(std::span<Request* const> by_slot, StepPlan& plan) {
  std::uint32_t first = 0;  // index of the item's first token among the step's tokens
  for (const PlanItem& item : plan.items) {
    const Request& r = *by_slot[item.slot];
    for (std::uint32_t i = item.begin; r.params.scores_prompt && i < item.begin + item.n; ++i)
      if (r.wants_score(i)) {
        OutputRow& output = add_row(r, i, first + i - item.begin, plan).output;
        output.wants_logits = false;
        output.n_logprobs = r.params.n_prompt_logprobs;
        output.scored = r.tokens.ids()[i + 1];
      }
    first += item.n;
  }
}

// Returns how long a step may become by the work of class `qos`, if the most urgent class in the step is `urgent`, a more
// urgent one, and the step takes urgent_us without that work.
double BatchPlanner::budget_beside(Qos urgent, Qos qos, double urgent_us) const {
  const double budget = kStretch[index(urgent)] * urgent_us;
  if (index(qos) != index(urgent) + 1) return budget;
  return std::max(budget, qos == Qos::kStandard ? kStandardBesideInteractiveUs : prompt_budget(urgent, 0, 0));
}

double BatchPlanner::prompt_budget(Qos decoding, std::uint32_t n_decode, double alone_us) const {
  const double budgets[kQosCount] = {kInteractiveUs, kOfGap * static_cast<double>(options_.standard_gap), kBatchUs};
  const double n = n_decode;
  return std::max(budgets[index(decoding)], (1 + kStepGrowth[index(decoding)] * n / (n + 1)) * alone_us);
}

// Learns from a step that ran, and sets how many prompt tokens the next step may have beside decoding slots. The number
// falls only while steps take longer than expected. It does not fall when a burst of prompts ends, so the next burst
// may use it at once.
void BatchPlanner::observe(const StepPlan& plan, double step_us) {
  StepSize size;
  for (const PlanItem& item : plan.items) size.add(item.begin, item.n);
  const double expected_us = cost_.is_known() ? cost_.step_us(size) : step_us;
  cost_.observe(size, step_us);
  if (plan.n_prompt_tokens() == 0) row_price_.observe(plan.n_tokens, step_us);
  const std::uint32_t n_prompt = plan.n_prompt_tokens();
  if (n_prompt == 0 || plan.n_decode == 0) return;
  if (step_us > kLate * expected_us) prompt_cap_ -= prompt_cap_ / 8;
  prompt_cap_ = std::max(2 * n_prompt, prompt_cap_);
}

// Returns how many prompt tokens a request may add to a step. Beside decoding slots that is at most twice the largest
// number so far, so that a wrong estimate of their cost shows early.
std::uint32_t BatchPlanner::prompt_tokens_allowed(const Request& r, const StepPlan& plan) const {
  const Qos qos = r.params.qos;
  Qos decoding = Qos::kBatch, planned = Qos::kBatch;  // the most urgent class that decodes, and that is planned
  StepSize all, decodes, urgent;  // urgent: the decoding slots and the prompts of more urgent classes
  for (const PlanItem& item : plan.items) {
    const Qos other = item.qos;
    planned = std::min(planned, other);
    if (item.is_decode) decoding = std::min(decoding, other);
    all.add(item.begin, item.n);
    if (item.is_decode) decodes.add(item.begin, item.n);
    if (item.is_decode || other < qos) urgent.add(item.begin, item.n);
  }
  const std::uint32_t n_prompt = plan.n_prompt_tokens();
  const std::uint32_t cap = decoding == Qos::kBatch ? options_.chunk_cap : std::max(kFirstChunk, prompt_cap_);
  const std::uint32_t room = cap - std::min(cap, n_prompt);
  if (!cost_.is_known()) return qos <= planned ? room : std::min(room, kFirstChunk);
  double budget = 0;
  std::uint32_t least = 1;  // so that every prompt makes progress
  if (qos > planned) {
    budget = budget_beside(planned, qos, cost_.step_us(urgent));
  } else {
    budget = prompt_budget(decoding, plan.n_decode, plan.n_decode == 0 ? 0 : cost_.step_us(decodes));
    if (decoding == Qos::kBatch) least = kLeastChunk;
  }
  return std::min(room, std::max(n_prompt == 0 ? least : 0, cost_.tokens_within(budget, all, r.n_done)));
}

// Returns the end of a chunk of at most n tokens. Some models encode positions differently in longer texts, so a chunk
// stops at the limit of the slot's variant. For models with recurrent state, a chunk stops where the state can be
// saved: at the last end of a page inside the text, at a page where other requests branched off, or at another end of a
// page.
std::uint32_t BatchPlanner::part_end(const Request& r, std::uint32_t n) const {
  const std::uint32_t total = r.tokens.size();
  std::uint32_t end = std::min(total, r.n_done + n);
  if (const std::uint32_t variant = slots_[r.slot].rope_variant; variant < options_.rope_limits.size())
    end = std::min(end, options_.rope_limits[variant]);
  if (!options_.is_recurrent) return end;
  const std::uint32_t last = (total - 1) / kPageTokens * kPageTokens;
  const std::uint32_t branch = r.snapshot_pages * kPageTokens;
  if (r.n_done < last) end = std::min(end, last);
  if (r.n_done < branch) end = std::min(end, branch);
  const std::uint32_t aligned = end / kPageTokens * kPageTokens;
  return end < last && aligned > r.n_done ? aligned : end;
}

std::uint32_t BatchPlanner::chunk_end(const Request& r, const StepPlan& plan) const {
  const std::uint32_t room = options_.chunk_cap - std::min(options_.chunk_cap, plan.n_tokens);
  const std::uint32_t allowed = std::min({room, options_.prefill_cap, prompt_tokens_allowed(r, plan)});
  if (allowed == 0) return r.n_done;
  if (!options_.needs_whole_texts) return part_end(r, allowed);
  // The model needs whole texts. A text is taken if it fits, either into what is allowed or into an otherwise empty
  // step.
  const std::uint32_t most = plan.items.empty() ? room : allowed;
  return r.n_left() <= most ? r.tokens.size() : r.n_done;
}

void BatchPlanner::sort_prompts(std::vector<Request*>& prompts) const {
  std::ranges::sort(prompts, [&](const Request* a, const Request* b) {
    if (a->params.qos != b->params.qos) return a->params.qos < b->params.qos;
    const double a_service = tenants_[a->params.tenant].service, b_service = tenants_[b->params.tenant].service;
    return a_service != b_service ? a_service < b_service : a->admitted_order < b->admitted_order;
  });
}

}  // namespace zinc_rt::sched
