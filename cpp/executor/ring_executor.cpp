#include "executor/ring_executor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "executor/rope_table.h"
#include "kernels/common/sample_params.h"
#include "mem/page_pool.h"

namespace zinc_rt {
namespace {

// Where a weight's rows lie in its tensor, in bytes.
struct WeightView {
  explicit WeightView(const ir::Buffer& buffer) : rank(buffer.rank) {
    const std::uint64_t rows = rank > 1 ? buffer.dims[rank - 2u].n : 1;
    row = row_bytes(buffer.dtype, buffer.dims[rank - 1u].n);
    for (std::size_t i = 0; i + 2 < rank; ++i) n_matrices *= buffer.dims[i].n;
    matrix = rows * row;
    pitch = buffer.tensor_rows > 0 ? buffer.tensor_rows * row : matrix;
    offset = buffer.first_row * row;
    span = (n_matrices - 1) * pitch + matrix;
  }
  std::size_t rank;
  std::uint64_t row, n_matrices = 1;
  std::uint64_t matrix, pitch;  // of the view's part of a matrix; from one matrix to the next
  std::uint64_t offset, span;
};

}  // namespace

Result<std::unique_ptr<Executor>> open_executor(const std::string& path, const ExecutorOptions& options) {
  ZRT_TRY(auto executor, RingExecutor::open(path, options));
  return std::unique_ptr<Executor>(std::move(executor));
}

RingExecutor::~RingExecutor() {
  ring_.reset();
}  // before the mapping that it may read from

Result<std::unique_ptr<RingExecutor>> RingExecutor::open(const std::string& path, const ExecutorOptions& options) {
  ZRT_TRY(const auto choice, ring::pick_tier(options.tier));
  auto executor = std::unique_ptr<RingExecutor>(new RingExecutor);
  ZRT_TRY(executor->ring_, choice.tier->make_ring({options.threads}));
  // A tier that computes in host memory says so by taking an import.
  static constexpr std::byte kProbe[1]{};
  bool mapped = options.mmap;
  if (mapped) {
    const auto probe = executor->ring_->import_host(kProbe);
    mapped = probe.has_value();
    if (probe) executor->ring_->free_bo(*probe);
  }
  ZRT_TRY(executor->prepared_, prepare(path, options, mapped));
  const auto& p = executor->prepared_;
  executor->info_ = {std::string(p.family->name),
                     choice.tier->name,
                     choice.why,
                     executor->ring_->describe(),
                     "exact",
                     options.activations,
                     options.fusion,
                     p.graph_options.max_slots,
                     p.graph_options.max_context,
                     p.graph_options.n_pages,
                     p.limits.max_tokens,
                     p.layout.page_bytes,
                     p.layout.page_bytes / mem::kPageTokens};
  executor->info_.n_state_checkpoints = options.state_checkpoints;
  for (const ir::Buffer& buffer : p.state_copy.buffers())
    if (buffer.buffer_class == ir::BufferClass::kState)
      executor->info_.state_bytes_per_slot += p.layout.places.at(buffer.name).pitch;
  ZRT_CHECK_OK(executor->load_weights(options, mapped));
  ZRT_CHECK_OK(executor->allocate(options));
  log().info("{}: {} ({}); {} slots, context {}, {} pages of {} bytes", p.config.name, choice.tier->name, choice.why,
             p.graph_options.max_slots, p.graph_options.max_context, p.graph_options.n_pages, p.layout.page_bytes);
  return executor;
}

Status RingExecutor::load_weights(const ExecutorOptions& options, bool mapped) {
  const auto& weights = *prepared_.weights;
  std::uint64_t done = 0;
  const std::uint64_t total = weights.total_bytes();
  const auto report = [&](std::uint64_t bytes) {
    done += bytes;
    if (options.on_progress) options.on_progress(std::min(done, total), total);
  };
  const auto add = [&](const ir::Buffer& buffer) -> Status {
    if (buffer.buffer_class != ir::BufferClass::kWeight || weight_locations_.contains(buffer.name)) return {};
    const WeightView view(buffer);
    const auto data = weights.find(buffer.tensor)->data.subspan(view.offset, view.span);
    if (mapped) {
      ZRT_TRY(const auto bo, ring_->import_host(data));
      weight_locations_[buffer.name] = {{bo.id, 0, view.span}, view.rank > 2 ? view.pitch : view.row};
    } else {
      const Place& place = prepared_.layout.places.at(buffer.name);
      if (!regions_.contains(place.region)) {
        ZRT_TRY(regions_[place.region],
                ring_->alloc_bo(prepared_.layout.plan.find(place.region)->bytes, Heap::kDeviceLocal));
      }
      ZRT_TRY(const auto memory, ring_->map(regions_[place.region]));
      for (std::uint64_t i = 0; i < view.n_matrices; ++i)
        std::memcpy(memory.data() + place.offset + i * view.matrix, data.data() + i * view.pitch, view.matrix);
      weight_locations_[buffer.name] = {{regions_[place.region].id, place.offset, view.n_matrices * view.matrix},
                                        view.rank > 2 ? view.matrix : view.row};
    }
    report(view.n_matrices * view.matrix);
    return {};
  };
  for (const ir::Graph* graph : {&prepared_.prefill_low, &prepared_.decode_low})
    for (const ir::Buffer& buffer : graph->buffers()) ZRT_CHECK_OK(add(buffer));
  if (options.on_progress) options.on_progress(total, total);
  return {};
}

Status RingExecutor::allocate(const ExecutorOptions&) {
  for (const mem::Region& region : prepared_.layout.plan.regions) {
    if (region.mapped || regions_.contains(region.name)) continue;
    ZRT_TRY(regions_[region.name], ring_->alloc_bo(region.bytes, region.heap));
  }
  ZRT_CHECK_OK(fill_constants());
  lower::KernelCache cache;
  const auto lower_stage = [&](const ir::Graph& graph, const lower::ActivationMap& activations) {
    return lower::lower(graph, *ring_, [&](ir::BufferId id) { return locate(graph, activations, id); }, cache);
  };
  ZRT_TRY(prefill_, lower_stage(prepared_.prefill_low, prepared_.layout.activations[0]));
  ZRT_TRY(decode_, lower_stage(prepared_.decode_low, prepared_.layout.activations[1]));
  ZRT_TRY(state_copy_, lower_stage(prepared_.state_copy, prepared_.layout.activations[2]));
  return {};
}

Status RingExecutor::fill_constants() {
  for (const auto& table : prepared_.family->rope_tables(prepared_.config, *prepared_.weights)) {
    ZRT_TRY(const auto view, host_view("const." + table.name));
    n_rope_variants_ = std::max(n_rope_variants_, static_cast<std::uint32_t>(table.variants.size()));
    fill_rope_table(table, prepared_.graph_options.max_context,
                    {reinterpret_cast<float*>(view.data()), view.size() / sizeof(float)});
  }
  return {};
}

Result<lower::Location> RingExecutor::locate(const ir::Graph& graph, const lower::ActivationMap& activations,
                                             ir::BufferId id) const {
  const ir::Buffer& buffer = graph.buffer(id);
  if (buffer.buffer_class == ir::BufferClass::kWeight) {
    return weight_locations_.at(buffer.name);
  }
  if (buffer.buffer_class == ir::BufferClass::kActivation) {
    const auto offset = activations.offsets[static_cast<std::size_t>(id)];
    return lower::Location{{regions_.at("activations").id, offset, lower::buffer_bytes(buffer, prepared_.limits)}, 0};
  }
  const Place& place = prepared_.layout.places.at(buffer.name);
  return lower::Location{{regions_.at(place.region).id, place.offset, place.bytes}, place.pitch};
}

Result<std::span<std::byte>> RingExecutor::host_view(const std::string& name) const {
  const auto place = prepared_.layout.places.find(name);
  if (place == prepared_.layout.places.end())
    return fail(StatusCode::kInternal, "[executor] the graph has no buffer {}", name);
  ZRT_TRY(const auto memory, ring_->map(regions_.at(place->second.region)));
  return memory.subspan(place->second.offset, place->second.bytes);
}

template <class T>
Result<T*> RingExecutor::request(const std::string& name) const {
  ZRT_TRY(const auto view, host_view("request." + name));
  return reinterpret_cast<T*>(view.data());
}

Status RingExecutor::check(const StepInput& input) const {
  const std::size_t n = input.token_ids.size();
  const auto refuse = [](const std::string& message) {
    return fail(StatusCode::kInvalidArgument, "[executor] {}", message);
  };
  if (n == 0 || n > info_.chunk_cap)
    return refuse(fmt::format("a step of {} tokens, 1 to {} allowed", n, info_.chunk_cap));
  if (input.positions.size() != n || input.slots.size() != n)
    return refuse(
        fmt::format("{} tokens with {} positions and {} slots", n, input.positions.size(), input.slots.size()));
  if (input.page_tables.size() > info_.max_slots)
    return refuse(fmt::format("{} page tables, {} slots", input.page_tables.size(), info_.max_slots));
  for (const auto& table : input.page_tables) {
    if (table.size() > info_.max_context / mem::kPageTokens)
      return refuse(
          fmt::format("a page table of {} pages, {} allowed", table.size(), info_.max_context / mem::kPageTokens));
    for (const auto page : table)
      if (page >= info_.n_pages) return refuse(fmt::format("page {} of {}", page, info_.n_pages));
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto id = input.token_ids[i], position = input.positions[i], slot = input.slots[i];
    if (id < 0 || static_cast<std::uint32_t>(id) >= prepared_.config.vocab_size)
      return refuse(fmt::format("token id {} at index {}, the vocabulary has {}", id, i, prepared_.config.vocab_size));
    if (position < 0 || static_cast<std::uint32_t>(position) >= info_.max_context)
      return refuse(fmt::format("position {} at index {}, the context has {}", position, i, info_.max_context));
    if (slot < 0 || static_cast<std::size_t>(slot) >= input.page_tables.size())
      return refuse(fmt::format("slot {} at index {}, {} have page tables", slot, i, input.page_tables.size()));
    if (input.page_tables[static_cast<std::size_t>(slot)].size() <=
        static_cast<std::size_t>(position) / mem::kPageTokens)
      return refuse(fmt::format("position {} lies past the {} pages of slot {}", position,
                                input.page_tables[static_cast<std::size_t>(slot)].size(), slot));
  }
  if (!input.rope_variants.empty() && input.rope_variants.size() != input.page_tables.size())
    return refuse(fmt::format("{} RoPE variants for {} slots", input.rope_variants.size(), input.page_tables.size()));
  for (const auto variant : input.rope_variants)
    if (variant >= n_rope_variants_) return refuse(fmt::format("RoPE variant {} of {}", variant, n_rope_variants_));
  // Recurrent state is updated in the order of the tokens.
  std::vector<bool> seen(input.page_tables.size(), false);
  for (std::size_t i = 0; i < n; ++i) {
    const auto slot = static_cast<std::size_t>(input.slots[i]);
    const bool goes_on = i > 0 && input.slots[i] == input.slots[i - 1];
    if (!goes_on && seen[slot])
      return refuse(fmt::format("the tokens of slot {} do not stand together (index {})", slot, i));
    if (goes_on && input.positions[i] <= input.positions[i - 1])
      return refuse(fmt::format("position {} after {} in slot {}", input.positions[i], input.positions[i - 1], slot));
    seen[slot] = true;
  }
  std::size_t group_history = 0;  // of the output rows that run together
  for (std::size_t i = 0; i < input.outputs.size(); ++i) {
    const OutputRow& row = input.outputs[i];
    if (i % prepared_.limits.max_outputs == 0) group_history = 0;
    group_history += row.history.size();
    if (group_history > prepared_.graph_options.history_tokens)
      return refuse(fmt::format("histories of {} tokens in one group of output rows, {} fit", group_history,
                                prepared_.graph_options.history_tokens));
    if (row.token_index >= n) return refuse(fmt::format("an output row of token {} of {}", row.token_index, n));
    if (row.n_prompt > row.history.size())
      return refuse(fmt::format("{} prompt tokens in a history of {}", row.n_prompt, row.history.size()));
    if (row.history.size() > info_.max_context)
      return refuse(fmt::format("a history of {} tokens, {} allowed", row.history.size(), info_.max_context));
  }
  return {};
}

Status RingExecutor::fill_body(const StepInput& input) {
  const auto copy = [&](const std::string& name, const std::vector<std::int32_t>& values) -> Status {
    ZRT_TRY(auto* to, request<std::int32_t>(name));
    std::ranges::copy(values, to);
    return {};
  };
  ZRT_CHECK_OK(copy("token_ids", input.token_ids));
  ZRT_CHECK_OK(copy("positions", input.positions));
  ZRT_CHECK_OK(copy("slots", input.slots));
  if (prepared_.layout.places.contains("request.rope_positions")) {
    ZRT_TRY(auto* rows, request<std::int32_t>("rope_positions"));
    for (std::size_t i = 0; i < input.positions.size(); ++i) {
      const auto variant =
          input.rope_variants.empty() ? 0 : input.rope_variants[static_cast<std::size_t>(input.slots[i])];
      rows[i] = input.positions[i] + static_cast<std::int32_t>(variant * info_.max_context);
    }
  }
  ZRT_TRY(auto* pages, request<std::int32_t>("page_table"));
  const std::size_t width = info_.max_context / mem::kPageTokens;
  for (std::size_t slot = 0; slot < input.page_tables.size(); ++slot)
    std::ranges::copy(input.page_tables[slot], pages + slot * width);
  return {};
}

Status RingExecutor::fill_outputs(const StepInput& input, std::size_t first, std::size_t count) {
  ZRT_TRY(auto* rows, request<std::int32_t>("output_rows"));
  ZRT_TRY(auto* slots, request<std::int32_t>("output_slots"));
  ZRT_TRY(auto* params, request<SampleParams>("sampling"));
  ZRT_TRY(auto* history, request<std::int32_t>("history"));
  std::size_t history_end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const OutputRow& row = input.outputs[first + i];
    const Sampling& s = row.sampling;
    rows[i] = static_cast<std::int32_t>(row.token_index);
    slots[i] = input.slots[row.token_index];
    std::ranges::copy(row.history, history + history_end);
    params[i] = {static_cast<std::uint32_t>(s.seed),
                 static_cast<std::uint32_t>(s.seed >> 32),
                 row.position,
                 s.temperature,
                 s.top_k,
                 s.top_p,
                 s.min_p,
                 s.repetition_penalty,
                 s.presence_penalty,
                 s.frequency_penalty,
                 static_cast<std::uint32_t>(history_end),
                 row.n_prompt,
                 static_cast<std::uint32_t>(row.history.size()),
                 {}};
    history_end += row.history.size();
  }
  return {};
}

Status RingExecutor::run(const ring::PacketBatch& batch, std::uint32_t first, std::uint32_t count,
                         ring::StepDims dims) {
  ZRT_TRY(const auto fence, ring_->submit({&batch, first, count, dims}));
  return ring_->wait(fence);
}

Status RingExecutor::drain_tokens(std::size_t count, std::vector<std::int32_t>& tokens) {
  ZRT_TRY(const auto view, host_view("host_ring.tokens"));
  const auto* ring = reinterpret_cast<const std::uint32_t*>(view.data());
  const std::uint32_t entries = prepared_.graph_options.ring_entries - 1;
  if (ring[0] - drained_ != count && info_.tier != "null")
    return fail(StatusCode::kInternal, "[executor] the output ring holds {} new tokens, {} wanted", ring[0] - drained_,
                count);
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(ring[4 * (1 + (drained_ + i) % entries) + 2]));
  drained_ = ring[0];
  return {};
}

Result<StepOutput> RingExecutor::step(const StepInput& input) {
  ZRT_CHECK_OK(check(input));
  ZRT_CHECK_OK(fill_body(input));
  // One token a slot: the decode graph. Its bits are those of the prefill graph.
  bool one_each = true;
  for (std::size_t i = 1; i < input.slots.size(); ++i) one_each &= input.slots[i] != input.slots[i - 1];
  const auto& batch = one_each ? decode_ : prefill_;
  const auto n_tokens = static_cast<std::uint32_t>(input.token_ids.size());
  const auto n_packets = static_cast<std::uint32_t>(batch.packets.size());
  StepOutput output;
  if (input.outputs.empty()) {
    ZRT_CHECK_OK(run(batch, 0, batch.body_end, {n_tokens, 0}));
    return output;
  }
  std::uint32_t from = 0;  // the body runs with the first group of output rows
  for (std::size_t first = 0; first < input.outputs.size();
       first += prepared_.limits.max_outputs, from = batch.body_end) {
    const auto count =
        static_cast<std::uint32_t>(std::min<std::size_t>(prepared_.limits.max_outputs, input.outputs.size() - first));
    ZRT_CHECK_OK(fill_outputs(input, first, count));
    ZRT_CHECK_OK(run(batch, from, n_packets - from, {n_tokens, count}));
    ZRT_CHECK_OK(drain_tokens(count, output.tokens));
    if (!input.on_logits) continue;
    ZRT_TRY(const auto view, host_view("out.logits"));
    input.on_logits(static_cast<std::uint32_t>(first),
                    {reinterpret_cast<const float*>(view.data()), std::size_t{count} * prepared_.config.vocab_size});
  }
  return output;
}

std::uint32_t RingExecutor::rope_variant(std::uint64_t n_tokens) const {
  const auto choose = prepared_.family->rope_variant;
  return choose == nullptr ? 0 : choose(prepared_.config, *prepared_.weights, n_tokens);
}

Status RingExecutor::copy_state(std::span<const StateCopy> copies) {
  const auto refuse = [](const std::string& message) {
    return fail(StatusCode::kInvalidArgument, "[executor] {}", message);
  };
  if (copies.size() > prepared_.limits.max_tokens)
    return refuse(fmt::format("{} copies of state at once, {} allowed", copies.size(), prepared_.limits.max_tokens));
  const std::uint32_t n_entries = prepared_.graph_options.state_entries;
  std::vector<int> named(n_entries, 0);
  for (const StateCopy& copy : copies)
    for (const auto entry : {copy.from, copy.to}) {
      if (entry >= n_entries) return refuse(fmt::format("state entry {} of {}", entry, n_entries));
      ++named[entry];
    }
  for (const StateCopy& copy : copies)
    if (named[copy.to] > 1) return refuse(fmt::format("state entry {} is written and named again", copy.to));
  if (copies.empty() || state_copy_.packets.empty()) return {};
  ZRT_TRY(auto* from, request<std::int32_t>("state_from"));
  ZRT_TRY(auto* to, request<std::int32_t>("state_to"));
  for (std::size_t i = 0; i < copies.size(); ++i) {
    from[i] = static_cast<std::int32_t>(copies[i].from);
    to[i] = static_cast<std::int32_t>(copies[i].to);
  }
  return run(state_copy_, 0, static_cast<std::uint32_t>(state_copy_.packets.size()),
             {static_cast<std::uint32_t>(copies.size()), 0});
}

Result<std::vector<float>> RingExecutor::hidden(const StepInput& input, int layer) {
  ZRT_CHECK_OK(check(input));
  if (layer < -1 || layer >= static_cast<int>(prepared_.config.n_layers))
    return fail(StatusCode::kInvalidArgument, "[executor] layer {} is not from -1 to {}", layer,
                prepared_.config.n_layers - 1);
  ZRT_CHECK_OK(fill_body(input));
  std::uint32_t end = 0;
  if (layer >= 0) {
    end = prefill_.layer_end[static_cast<std::size_t>(layer)];
  } else {
    while (end < prefill_.body_end && prefill_.packets[end].layer < 0) ++end;
  }
  const auto n_tokens = static_cast<std::uint32_t>(input.token_ids.size());
  ZRT_CHECK_OK(run(prefill_, 0, end, {n_tokens, 0}));
  const ir::BufferId id = prepared_.prefill_low.find("act.hidden");
  if (id == ir::kNoBuffer) return fail(StatusCode::kInternal, "[executor] the graph has no residual stream act.hidden");
  ZRT_TRY(const auto arena, ring_->map(regions_.at("activations")));
  const auto* values = reinterpret_cast<const float*>(
      arena.data() + prepared_.layout.activations[0].offsets[static_cast<std::size_t>(id)]);
  return std::vector<float>(values, values + std::size_t{n_tokens} * prepared_.config.model_dim);
}

}  // namespace zinc_rt
