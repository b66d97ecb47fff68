#include "executor/prepare.h"

#include <algorithm>

#include "base/error.h"
#include "base/machine_memory.h"
#include "executor/fit.h"
#include "ir/verify.h"
#include "lower/passes.h"
#include "mem/page_pool.h"
#include "ring/tier.h"

namespace zinc_rt {
namespace {

constexpr std::uint32_t kDefaultContext = 32768;
constexpr std::uint32_t kMaxOutputs = 64;
constexpr std::uint32_t kMaxSlots = 4096;
constexpr std::uint32_t kMaxCheckpoints = 1u << 16;

// By default the cache is no coarser than the rest of the arithmetic: f32 where nothing else is rounded below f32, else
// f16.
Result<DType> parse_kv_dtype(std::string_view text, const ExecutorOptions& options, const Weights& weights) {
  if (text.empty()) {
    const auto& formats = weights.bytes_by_dtype();
    const bool is_f32 = formats.size() == 1 && formats[0].first == DType::kF32;
    return is_f32 || options.activations == "f32" ? DType::kF32 : DType::kF16;
  }
  const auto dtype = parse_dtype(text);
  if (dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kQ8_0) return *dtype;
  return fail(StatusCode::kInvalidArgument, "[executor] kv_dtype \"{}\" is not one of f16, f32, q8_0", text);
}

Status choose_sizes(const ExecutorOptions& options, const ModelConfig& config, Prepared& p) {
  auto& g = p.graph_options;
  if (options.max_slots < 1 || options.max_slots > kMaxSlots)
    return fail(StatusCode::kInvalidArgument, "[executor] max_slots {} is not from 1 to {}", options.max_slots,
                kMaxSlots);
  g.max_slots = options.max_slots;
  if (options.state_checkpoints > kMaxCheckpoints)
    return fail(StatusCode::kInvalidArgument, "[executor] state_checkpoints {} exceeds {}", options.state_checkpoints,
                kMaxCheckpoints);
  g.state_entries = options.max_slots + options.state_checkpoints;
  const std::uint32_t context =
      options.max_context > 0 ? options.max_context : std::min(config.context_length, kDefaultContext);
  if (context > config.context_length)
    return fail(StatusCode::kInvalidArgument, "[executor] max_context {} exceeds the model's context of {} tokens",
                context, config.context_length);
  g.max_context = mem::pages_for(context) * mem::kPageTokens;
  if (std::uint64_t{g.max_slots} * g.max_context > UINT32_MAX)
    return fail(StatusCode::kInvalidArgument, "[executor] {} slots of {} tokens exceed {} tokens in all", g.max_slots,
                g.max_context, UINT32_MAX);
  g.history_tokens = g.max_slots * g.max_context;
  g.bias_entries = g.max_slots * kMaxBias;
  const std::uint32_t chunk = options.chunk_cap > 0 ? options.chunk_cap : ring::kDefaultChunk;
  p.limits.max_tokens = std::max(std::min(chunk, g.max_context), g.max_slots);  // all slots can decode in one step
  p.limits.max_outputs = std::max(std::min(p.limits.max_tokens, kMaxOutputs), g.max_slots);
  g.ring_entries = 2 * p.limits.max_outputs + 1;
  ZRT_TRY(g.kv_dtype, parse_kv_dtype(options.kv_dtype, options, *p.weights));
  return {};
}

Result<ir::Graph> lower_graph(const ir::Graph& graph, const ExecutorOptions& options, const ir::TensorLookup& tensors) {
  ZRT_CHECK_OK(ir::verify(graph, tensors));
  ZRT_TRY(const auto fusion, lower::parse_fusion(options.fusion));
  const bool quantize = options.activations == "int8";
  if (!quantize && options.activations != "f32")
    return fail(StatusCode::kInvalidArgument, "[executor] activations \"{}\" is not one of int8, f32",
                options.activations);
  auto low = lower::fuse(graph, fusion);
  if (quantize) {
    ZRT_TRY(low, lower::quantize_activations(low));
  }
  ZRT_CHECK_OK(ir::verify(low, tensors));
  return low;
}

// A STATE_COPY of a buffer [entries, width], the pairs in request.copy_from and copy_to.
void add_copy(ir::Graph& graph, const std::string& name, DType dtype, ir::Dim entries, std::uint32_t width) {
  const auto declare = [&](std::string buffer_name, ir::BufferClass buffer_class, DType type,
                           std::initializer_list<ir::Dim> dims) {
    ir::Buffer buffer;
    buffer.name = std::move(buffer_name);
    buffer.buffer_class = buffer_class;
    buffer.dtype = type;
    for (const auto dim : dims) buffer.dims[buffer.rank++] = dim;
    return graph.add_buffer(std::move(buffer));
  };
  const auto from = declare("request.copy_from", ir::BufferClass::kRequest, DType::kI32, {ir::kTokens});
  const auto to = declare("request.copy_to", ir::BufferClass::kRequest, DType::kI32, {ir::kTokens});
  const auto id = declare(name, ir::BufferClass::kState, dtype, {entries, width});
  ir::Node node;
  node.op = ir::Op::STATE_COPY;
  node.inplace = true;
  node.n_inputs = 3;
  node.n_outputs = 1;
  node.inputs = {from, to, id};
  node.outputs = {id};
  graph.add_node(node);
}

// Checkpoints are further entries of the state buffers themselves, so that a copy is a packet like any other.
ir::Graph state_copy_graph(const ir::Graph& model) {
  ir::Graph graph("state_copy", ir::Stage::kBoth);
  for (const ir::Buffer& state : model.buffers()) {
    if (state.buffer_class != ir::BufferClass::kState || is_paged(state)) continue;
    std::uint32_t width = 1;
    for (std::size_t i = 1; i < state.rank; ++i) width *= state.dims[i].n;
    add_copy(graph, state.name, state.dtype, state.dims[0], width);
  }
  return graph;
}

// All layers at once: the bytes of a page seen as one row of f32 words, whatever types K and V have.
ir::Graph page_copy_graph(std::uint32_t n_pages, std::uint64_t page_bytes) {
  ir::Graph graph("page_copy", ir::Stage::kBoth);
  if (page_bytes > 0)
    add_copy(graph, std::string(kWholePages), DType::kF32, n_pages, static_cast<std::uint32_t>(page_bytes / 4));
  return graph;
}

// With one KV page and no copy of pages: their number is bound once it is known.
Status build_graphs(const ExecutorOptions& options, const Target& target, Prepared& p) {
  const ir::TensorLookup tensors = [&](std::string_view name) -> std::optional<ir::TensorSpec> {
    const Tensor* tensor = p.weights->find(name);
    if (tensor == nullptr) return std::nullopt;
    ir::TensorSpec spec{tensor->dtype, {tensor->dims.begin(), tensor->dims.begin() + tensor->n_dims}};
    std::ranges::reverse(spec.dims);
    return spec;
  };
  p.graph_options.stage = ir::Stage::kPrefill;
  ZRT_TRY(p.prefill, p.family->build(p.config, *p.weights, p.graph_options));
  p.graph_options.stage = ir::Stage::kDecode;
  ZRT_TRY(p.decode, p.family->build(p.config, *p.weights, p.graph_options));
  ZRT_TRY(p.prefill_low, lower_graph(p.prefill, options, tensors));
  ZRT_TRY(p.decode_low, lower_graph(p.decode, options, tensors));
  p.state_copy = state_copy_graph(p.prefill_low);
  ZRT_CHECK_OK(ir::verify(p.state_copy));
  p.page_copy = {};
  p.joins.clear();
  for (const ir::Graph* graph : p.run_graphs()) {
    ZRT_TRY(auto joins, lower::find_joins(*graph, target.joins));
    p.joins.push_back(std::move(joins));
  }
  return {};
}

// The number of KV pages, which no kernel asks for.
Status bind_pages(Prepared& p, std::uint32_t n_pages) {
  p.graph_options.n_pages = n_pages;
  for (ir::Graph* graph : {&p.prefill, &p.decode, &p.prefill_low, &p.decode_low})
    for (ir::Buffer& buffer : graph->mutable_buffers())
      if (is_paged(buffer)) buffer.dims[0] = n_pages;
  p.page_copy = page_copy_graph(n_pages, p.layout.page_bytes);
  return ir::verify(p.page_copy);
}

}  // namespace

Status shape(Prepared& p, const ExecutorOptions& options, const Target& target) {
  p.layout = {};
  ZRT_CHECK_OK(choose_sizes(options, p.config, p));
  p.graph_options.n_pages = 1;
  ZRT_CHECK_OK(build_graphs(options, target, p));
  p.layout = make_layout(p.run_graphs(), {.limits = p.limits,
                                          .n_pages = 1,
                                          .aliasing = options.aliasing,
                                          .weights_mapped = target.maps_weights,
                                          .joins = p.joins});
  return {};
}

Result<Prepared> prepare(const std::string& path, const ExecutorOptions& options, const Target& target) {
  Prepared p;
  ZRT_TRY(auto weights, Weights::open(path));
  p.weights = std::make_unique<Weights>(std::move(weights));
  ZRT_TRY(p.config, read_config(p.weights->metadata(), p.weights->infos()));
  ZRT_TRY(p.family, arch::find_family(p.config.architecture));
  ZRT_CHECK_OK(shape(p, options, target));
  Fit fit{options.kv_pages > 0 ? options.kv_pages : default_pages(p, machine_memory_bytes())};
  if (target.budget != nullptr) {
    ZRT_TRY(fit, fit_device(p, options, target));
  }
  ZRT_CHECK_OK(bind_pages(p, fit.n_pages));
  p.layout = make_layout(p.run_graphs(), {.limits = p.limits,
                                          .n_pages = fit.n_pages,
                                          .aliasing = options.aliasing,
                                          .weights_mapped = target.maps_weights,
                                          .first_host_layer = fit.first_host_layer,
                                          .scratch_bytes = fit.scratch_bytes,
                                          .joins = p.joins});
  return p;
}

}  // namespace zinc_rt
