// Runs a step on the ring: fills the step descriptor, submits, and reads the results. Except for hidden(), nothing here
// allocates once the caller's input and output have grown.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "executor/ring/ring_executor.h"
#include "kernels/common/kv_page.h"
#include "kernels/common/sample_params.h"
#include "kernels/common/slot_field.h"

namespace zinc_rt {
namespace {

ring::StepDims dims_of(const StepInput& input, std::uint32_t n_outputs) {
  std::int32_t last = -1;
  for (const std::int32_t position : input.positions) last = std::max(last, position);
  return {static_cast<std::uint32_t>(input.token_ids.size()), n_outputs, static_cast<std::uint32_t>(last + 1)};
}

bool wants_logprobs(const OutputRow& row) {
  return row.n_logprobs.has_value();
}

}  // namespace

static_assert(kSampleNone == kNoToken);
static_assert(id_of_field(kLastToken) == kLastPick);
static_assert(kLogprobTop == kMostLogprobs && sizeof(LogprobStats::Token) == sizeof(TokenLogit));

void RingExecutor::fill_runs(const StepInput& input, StateRun* runs) {
  auto next = input.runs.begin();
  for (std::size_t i = 0, n = 0; i < input.slots.size(); i += n) {
    const auto slot = static_cast<std::size_t>(input.slots[i]);
    for (n = 1; i + n < input.slots.size() && input.slots[i + n] == input.slots[i];) ++n;
    runs[slot] = {.n_replayed = 0, .n_certain = kAllCertain, .half = 0, .save_at = 0, .save_to = 0};
    if (next == input.runs.end() || next->slot != slot) continue;
    const SlotRun& run = *next++;
    runs[slot] = {.n_replayed = run.n_replayed,
                  .n_certain = run.n_guessed > 0 ? static_cast<std::uint32_t>(n) - run.n_guessed : kAllCertain,
                  .half = saved_half_[slot],
                  .save_at = run.save_at,
                  .save_to = run.save_to};
    // The next step replays the guesses of this one.
    if (run.n_guessed > 0) saved_half_[slot] = 1 - saved_half_[slot];
  }
}

void RingExecutor::fill_body(const StepInput& input, const Views& views) {
  std::ranges::copy(input.token_ids, views.token_ids);
  std::ranges::copy(input.positions, views.positions);
  std::ranges::copy(input.slots, views.slots);
  if (views.rope_positions != nullptr)
    for (std::size_t i = 0; i < input.positions.size(); ++i) {
      const auto variant =
          input.rope_variants.empty() ? 0 : input.rope_variants[static_cast<std::size_t>(input.slots[i])];
      views.rope_positions[i] = input.positions[i] + static_cast<std::int32_t>(variant * info_.max_context);
    }
  if (views.token_types != nullptr) {
    std::fill_n(views.token_types, input.token_ids.size(), 0);
    std::ranges::copy(input.token_types, views.token_types);
  }
  if (views.text_ends != nullptr)
    for (std::size_t i = input.slots.size(); i-- > 0;) {
      const bool is_last = i + 1 == input.slots.size() || input.slots[i + 1] != input.slots[i];
      views.text_ends[i] = is_last ? input.positions[i] : views.text_ends[i + 1];
    }
  if (views.features != nullptr) std::ranges::copy(input.features, views.features);
  if (views.state_runs != nullptr) fill_runs(input, views.state_runs);
  const std::size_t width = info_.max_context / kPageTokens, n = input.slots.size();
  for (std::size_t i = 0; i < n; ++i) {
    // Only the last position of a slot counts here, because it reads the most pages.
    if (i + 1 < n && input.slots[i + 1] == input.slots[i]) continue;
    const auto slot = static_cast<std::size_t>(input.slots[i]);
    const auto n_pages = static_cast<std::size_t>(input.positions[i]) / kPageTokens + 1;
    std::memcpy(views.page_table + slot * width, input.page_tables.ids.data() + slot * input.page_tables.width,
                n_pages * sizeof(std::uint32_t));
  }
}

void RingExecutor::fill_outputs(const StepInput& input, std::size_t first, std::size_t count, const Views& views) {
  // The parameters that SAMPLE reads are written here only. If a member is added to SamplingParams, write it below.
  static_assert(sizeof(SamplingParams) == 8 * sizeof(std::uint32_t));
  std::size_t history_begin = 0, history_end = 0, bias_begin = 0, bias_end = 0;
  const OutputRow none;
  for (std::size_t i = 0; i < count; ++i) {
    const OutputRow& row = input.outputs[first + i];
    const OutputRow& before = i > 0 ? input.outputs[first + i - 1] : none;
    const Sampling& s = row.sampling;
    views.output_rows[i] = static_cast<std::int32_t>(row.token_index);
    views.output_slots[i] = input.slots[row.token_index];
    const std::size_t n_shared = shares_history(row, before) ? before.history.size() : 0;
    if (n_shared == 0) history_begin = history_end;
    std::ranges::copy(row.history.subspan(n_shared), views.history + history_end);
    history_end = history_begin + row.history.size();
    if (!shares_bias(row, before)) {
      bias_begin = bias_end;
      std::uint32_t* entry = views.bias + 2 * bias_end;
      const auto add_bias = [&](std::int32_t id, float bias) {
        *entry++ = static_cast<std::uint32_t>(id);
        *entry++ = std::bit_cast<std::uint32_t>(bias);
      };
      for (const TokenBias& bias : row.bias) add_bias(bias.token_id, bias.bias);
      for (const std::int32_t id : row.banned) add_bias(id, -std::numeric_limits<float>::infinity());
      bias_end += row.bias.size() + row.banned.size();
    }
    views.sampling[i] = {.seed_lo = static_cast<std::uint32_t>(s.seed),
                         .seed_hi = static_cast<std::uint32_t>(s.seed >> 32),
                         .position = row.position,
                         .temperature = s.temperature,
                         .top_k = s.top_k,
                         .top_p = s.top_p,
                         .min_p = s.min_p,
                         .repetition_penalty = s.repetition_penalty,
                         .presence_penalty = s.presence_penalty,
                         .frequency_penalty = s.frequency_penalty,
                         .history_begin = static_cast<std::uint32_t>(history_begin),
                         .n_prompt = row.n_prompt,
                         .n_history = static_cast<std::uint32_t>(row.history.size()),
                         .typical_p = s.typical_p,
                         .bias_begin = static_cast<std::uint32_t>(bias_begin),
                         .n_bias = static_cast<std::uint32_t>(row.bias.size() + row.banned.size()),
                         .mask_begin = 0,
                         .n_mask_words = 0};
    if (views.wanted_logprobs != nullptr)
      views.wanted_logprobs[i] = {row.n_logprobs ? static_cast<std::int32_t>(*row.n_logprobs) : -1, row.scored};
  }
}

Status RingExecutor::fill_masks(const Begun& begun) {
  const StepInput& input = *begun.input;
  const Views& views = views_[begun.operand_set];
  const std::size_t first = begun.first;
  std::size_t end = 0;
  for (std::size_t i = 0; i < begun.count; ++i) {
    if (!input.outputs[first + i].is_masked) continue;
    const auto mask = input.mask(static_cast<std::uint32_t>(first + i));
    ZRT_CHECK_OK(check_.check_mask(mask));
    std::ranges::copy(mask, views.mask + end);
    views.sampling[i].mask_begin = static_cast<std::uint32_t>(end);
    views.sampling[i].n_mask_words = static_cast<std::uint32_t>(mask.size());
    end += mask.size();
  }
  return {};
}

Status RingExecutor::wait(ring::Fence fence) {
  ZRT_CHECK_OK(ring_->wait(fence));
  return has_mapped_weights_ ? prepared_.weights->is_whole() : Status{};
}

Status RingExecutor::run(const ring::PacketBatch& batch, std::uint32_t first, std::uint32_t count,
                         ring::StepDims dims) {
  ZRT_TRY(const auto fence, ring_->submit({.batch = &batch, .first = first, .count = count, .dims = dims}));
  return wait(fence);
}

Result<std::span<const float>> RingExecutor::read_floats(std::string_view region, std::uint64_t offset,
                                                         std::uint64_t count) {
  ZRT_TRY(const auto bytes, ring_->read(regions_.at(std::string(region)), offset, count * sizeof(float)));
  return std::span(reinterpret_cast<const float*>(bytes.data()), count);
}

Status RingExecutor::drain_tokens(std::size_t count, std::vector<std::int32_t>& tokens) {
  const std::uint32_t* ring = views_[0].tokens;
  const std::uint32_t entries = prepared_.graph_options.ring_entries - 1;
  const bool computes = info_.tier != "null";
  // While another step runs, the device may write the count at any time.
  if (computes && n_begun_ == 1 && ring[0] - drained_ != count)
    return fail(StatusCode::kInternal, "[executor] the output ring holds {} new tokens, {} wanted", ring[0] - drained_,
                count);
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(ring[4 * (1 + (drained_ + i) % entries) + 2]));
  if (computes) drained_ += static_cast<std::uint32_t>(count);
  return {};
}

Status RingExecutor::read_logits(const StepInput& input, std::size_t first, std::size_t count) {
  const std::uint64_t width = prepared_.logits_dim, offset = prepared_.layout.locations.at("out.logits").offset;
  const auto rows = std::span(input.outputs).subspan(first, count);
  const auto wants = [](const OutputRow& row) { return row.wants_logits; };
  for (auto from = std::ranges::find_if(rows, wants), to = from; from != rows.end();
       from = std::find_if(to, rows.end(), wants)) {
    to = std::find_if_not(from, rows.end(), wants);
    const auto row = static_cast<std::uint64_t>(from - rows.begin());
    ZRT_TRY(const auto logits,
            read_floats("logits", offset + row * width * sizeof(float), static_cast<std::uint64_t>(to - from) * width));
    input.on_logits(static_cast<std::uint32_t>(first + row), logits);
  }
  return {};
}

void RingExecutor::give_logprobs(const Begun& begun) {
  const StepInput& input = *begun.input;
  const std::size_t first = begun.first, count = begun.count;
  logprobs_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (!input.outputs[first + i].n_logprobs) continue;
    const LogprobStats& stats = views_[begun.operand_set].logprobs[i];
    const auto* top = reinterpret_cast<const TokenLogit*>(stats.top);
    const auto* end = std::ranges::find(top, top + *input.outputs[first + i].n_logprobs, kNoToken, &TokenLogit::id);
    logprobs_.push_back({.sum = std::bit_cast<double>(std::uint64_t{stats.sum[1]} << 32 | stats.sum[0]),
                         .max = stats.max,
                         .logit = stats.logit,
                         .top = {top, end}});
    if (i + 1 < count && input.outputs[first + i + 1].n_logprobs) continue;
    input.on_logprobs(static_cast<std::uint32_t>(first + i + 1 - logprobs_.size()), logprobs_);
    logprobs_.clear();
  }
}

Status RingExecutor::process_rows(const StepInput& input, std::size_t first, std::size_t count) {
  const std::uint64_t width = prepared_.logits_dim, offset = prepared_.layout.locations.at("out.logits").offset;
  unprocessed_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (!input.outputs[first + i].is_processed) continue;
    const std::uint64_t at = offset + i * width * sizeof(float);
    ZRT_TRY(const auto logits, read_floats("logits", at, width));
    row_.assign(logits.begin(), logits.end());
    unprocessed_.insert(unprocessed_.end(), row_.begin(), row_.end());
    input.process(static_cast<std::uint32_t>(first + i), row_);
    ZRT_CHECK_OK(ring_->write(regions_.at("logits"), at, std::as_bytes(std::span(row_))));
  }
  return {};
}

Status RingExecutor::restore_rows(const StepInput& input, std::size_t first, std::size_t count) {
  const std::uint64_t width = prepared_.logits_dim, offset = prepared_.layout.locations.at("out.logits").offset;
  std::size_t n_before = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!input.outputs[first + i].is_processed) continue;
    const auto row = std::span(unprocessed_).subspan(n_before++ * width, width);
    if (input.outputs[first + i].wants_logits)
      ZRT_CHECK_OK(ring_->write(regions_.at("logits"), offset + i * width * sizeof(float), std::as_bytes(row)));
  }
  return {};
}

// Submits the packets of a group. If the caller's masks or processors take part in a pick, it stops before SAMPLE, and
// finish_picks() submits the rest.
Status RingExecutor::begin_group(Begun& begun, std::size_t first, std::uint32_t from) {
  const StepInput& input = *begun.input;
  const Views& views = views_[begun.operand_set];
  const auto& packets = begun.batch->packets;
  const auto rows = std::span(input.outputs).subspan(first);
  begun.first = first;
  begun.count = static_cast<std::uint32_t>(std::min<std::size_t>(prepared_.limits.max_outputs, rows.size()));
  begun.dims.n_outputs = begun.count;
  // LOGPROBS, the last packet of tiers that have it, runs only for groups with a row that wants it.
  begun.end = static_cast<std::uint32_t>(packets.size());
  if (views.logprobs != nullptr && !(input.on_logprobs && std::ranges::any_of(rows.first(begun.count), wants_logprobs)))
    --begun.end;
  begun.next = begun.end;
  begun.is_processed = false;
  if (rows.empty()) {
    begun.next = begun.batch->body_end;
  } else if (info_.pooling != Pooling::kNone) {
    for (std::uint32_t i = 0; i < begun.count; ++i)
      views.output_rows[i] = static_cast<std::int32_t>(rows[i].token_index);
  } else {
    fill_outputs(input, first, begun.count, views);
    const auto group = rows.first(begun.count);
    begun.is_processed = input.process && std::ranges::any_of(group, &OutputRow::is_processed);
    if (begun.is_processed || std::ranges::any_of(group, &OutputRow::is_masked))
      begun.next =
          static_cast<std::uint32_t>(std::ranges::find(packets, ir::Op::SAMPLE, &ring::Packet::op) - packets.begin());
  }
  ZRT_TRY(begun.fence, ring_->submit({begun.batch, from, begun.next - from, begun.dims, begun.operand_set}));
  return {};
}

Status RingExecutor::finish_embeddings(const Begun& begun) {
  const StepInput& input = *begun.input;
  const std::uint64_t width = info_.embedding_dim, offset = prepared_.layout.locations.at("out.embeddings").offset;
  ZRT_CHECK_OK(wait(begun.fence));
  if (!input.on_embeddings) return {};
  ZRT_TRY(const auto rows, read_floats("embeddings", offset, begun.count * width));
  input.on_embeddings(static_cast<std::uint32_t>(begun.first), rows);
  return {};
}

Status RingExecutor::finish_picks(const Begun& begun, StepOutput& output) {
  const StepInput& input = *begun.input;
  const std::size_t first = begun.first, count = begun.count;
  if (begun.next < begun.end) {
    const auto masks = fill_masks(begun);
    if (begun.is_processed || !masks) ZRT_CHECK_OK(ring_->wait(begun.fence));
    ZRT_CHECK_OK(masks);
    if (begun.is_processed) ZRT_CHECK_OK(process_rows(input, first, count));
    ZRT_CHECK_OK(run(*begun.batch, begun.next, begun.end - begun.next, begun.dims));
  } else {
    ZRT_CHECK_OK(wait(begun.fence));
  }
  ZRT_CHECK_OK(drain_tokens(count, output.tokens));
  if (begun.is_processed) ZRT_CHECK_OK(restore_rows(input, first, count));
  if (input.on_logprobs) give_logprobs(begun);
  return input.on_logits ? read_logits(input, first, count) : Status{};
}

Status RingExecutor::check_ahead(const StepInput& input) const {
  if (!info_.runs_ahead || n_begun_ == 2)
    return fail(StatusCode::kInvalidArgument, "[executor] {} steps run, tier {} runs {} at once", n_begun_, info_.tier,
                info_.runs_ahead ? 2 : 1);
  const Begun& running = begun_[first_begun_];
  const auto is_alone = [](const OutputRow& row) { return !row.is_masked && !row.is_processed && !row.wants_logits; };
  if (!can_run_ahead(input) || running.input->outputs.size() > running.count ||
      !std::ranges::all_of(running.input->outputs, is_alone))
    return fail(StatusCode::kInvalidArgument, "[executor] a step of {} tokens cannot begin while one of {} runs",
                input.token_ids.size(), running.input->token_ids.size());
  return {};
}

Status RingExecutor::begin(const StepInput& input) {
  const bool is_ahead = n_begun_ > 0;
  if (is_ahead) ZRT_CHECK_OK(check_ahead(input));
  ZRT_CHECK_OK(check_.check(input, is_ahead));
  // If each slot has one token, the decode graph runs. It computes the same bits as the prefill graph.
  const bool one_each = std::ranges::adjacent_find(input.slots) == input.slots.end();
  Begun& begun = begun_[(first_begun_ + n_begun_) % 2];
  begun = {.input = &input,
           .operand_set = is_ahead ? 1 - begun_[first_begun_].operand_set : 0,
           .batch = one_each ? &decode_ : &prefill_,
           .dims = dims_of(input, 0)};
  fill_body(input, views_[begun.operand_set]);
  ZRT_CHECK_OK(begin_group(begun, 0, 0));
  ++n_begun_;
  return {};
}

Status RingExecutor::finish(StepOutput& output) {
  output.tokens.clear();
  const Status status = finish_step(begun_[first_begun_], output);
  first_begun_ = 1 - first_begun_;
  --n_begun_;
  return status;
}

Status RingExecutor::give_features(const StepInput& input) {
  if (info_.feature_dim == 0 || !input.on_features) return {};
  ZRT_TRY(const auto rows, read_floats("features", prepared_.layout.locations.at("out.features").offset,
                                       input.token_ids.size() * info_.feature_dim));
  input.on_features(rows);
  return {};
}

Status RingExecutor::finish_step(Begun& begun, StepOutput& output) {
  const StepInput& input = *begun.input;
  const std::size_t n_rows = input.outputs.size();
  if (n_rows == 0) {
    ZRT_CHECK_OK(wait(begun.fence));
    return give_features(input);
  }
  for (;;) {
    ZRT_CHECK_OK(info_.pooling == Pooling::kNone ? finish_picks(begun, output) : finish_embeddings(begun));
    const std::size_t next = begun.first + begun.count;
    if (next == n_rows) return give_features(input);
    ZRT_CHECK_OK(begin_group(begun, next, begun.batch->body_end));  // the body has already run, with the first group
  }
}

template <class Copy>
Status RingExecutor::copy_entries(const ring::PacketBatch& batch, std::span<const Copy> copies) {
  ZRT_CHECK_OK(check_.check(copies));
  if (copies.empty() || batch.packets.empty()) return {};
  for (std::size_t i = 0; i < copies.size(); ++i) {
    views_[0].copy_from[i] = static_cast<std::int32_t>(copies[i].from);
    views_[0].copy_to[i] = static_cast<std::int32_t>(copies[i].to);
  }
  return run(batch, 0, static_cast<std::uint32_t>(batch.packets.size()),
             {static_cast<std::uint32_t>(copies.size()), 0, 0});
}

Status RingExecutor::copy_state(std::span<const StateCopy> copies) {
  return copy_entries(state_copy_, copies);
}

Status RingExecutor::copy_pages(std::span<const PageCopy> copies) {
  return copy_entries(page_copy_, copies);
}

Status RingExecutor::check_pages(std::span<const std::uint32_t> pages, std::size_t n_bytes) const {
  if (n_bytes != pages.size() * info_.page_bytes)
    return fail(StatusCode::kInvalidArgument, "[executor] {} bytes for {} pages of {}", n_bytes, pages.size(),
                info_.page_bytes);
  for (const std::uint32_t page : pages)
    if (page >= info_.n_pages)
      return fail(StatusCode::kInvalidArgument, "[executor] page {}, there are {}", page, info_.n_pages);
  return {};
}

Status RingExecutor::read_pages(std::span<const std::uint32_t> pages, std::span<std::byte> to) {
  ZRT_CHECK_OK(check_pages(pages, to.size()));
  for (std::size_t i = 0; i < pages.size(); ++i) {
    ZRT_TRY(const auto page,
            ring_->read(regions_.at(std::string(kPages)), pages[i] * info_.page_bytes, info_.page_bytes));
    std::ranges::copy(page, to.begin() + static_cast<std::ptrdiff_t>(i * info_.page_bytes));
  }
  return {};
}

Status RingExecutor::write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> from) {
  ZRT_CHECK_OK(check_pages(pages, from.size()));
  for (std::size_t i = 0; i < pages.size(); ++i)
    ZRT_CHECK_OK(ring_->write(regions_.at(std::string(kPages)), pages[i] * info_.page_bytes,
                              from.subspan(i * info_.page_bytes, info_.page_bytes)));
  return {};
}

Result<std::vector<float>> RingExecutor::hidden(const StepInput& input, int layer) {
  ZRT_CHECK_OK(check_.check(input));
  if (layer < -1 || layer >= static_cast<int>(prepared_.config.n_layers))
    return fail(StatusCode::kInvalidArgument, "[executor] layer {} is not from -1 to {}", layer,
                prepared_.config.n_layers - 1);
  fill_body(input, views_[0]);
  std::uint32_t end = 0;
  if (layer >= 0) {
    end = prefill_.layer_end[static_cast<std::size_t>(layer)];
  } else {
    while (end < prefill_.body_end && prefill_.packets[end].layer < 0) ++end;
  }
  const auto n_tokens = static_cast<std::uint32_t>(input.token_ids.size());
  ZRT_CHECK_OK(run(prefill_, 0, end, dims_of(input, 0)));
  const ir::BufferId id = prepared_.prefill_low.find("act.hidden");
  if (id == ir::kNoBuffer) return fail(StatusCode::kInternal, "[executor] the graph has no residual stream act.hidden");
  ZRT_TRY(const auto values,
          read_floats("activations", prepared_.layout.activations[0].offsets[static_cast<std::size_t>(id)],
                      std::uint64_t{n_tokens} * prepared_.config.model_dim));
  return std::vector<float>(values.begin(), values.end());
}

}  // namespace zinc_rt
