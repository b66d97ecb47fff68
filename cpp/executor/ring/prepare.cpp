#include "executor/ring/prepare.h"

#include <algorithm>

#include "base/error.h"
#include "base/platform/machine_memory.h"
#include "executor/ring/fit.h"
#include "ir/verify.h"
#include "lower/passes.h"
#include "model/config_keys.h"

namespace zinc_rt {
namespace {

Status bind_sizes(const ExecutorOptions& options, const Target& target, Prepared& p) {
  ZRT_TRY(p.sizes, choose_sizes(options, p.config));
  p.limits = {p.sizes.max_tokens, p.sizes.max_outputs};
  auto& g = p.graph_options;
  g.max_slots = p.sizes.max_slots;
  g.state_entries = p.sizes.state_entries;
  g.state_guesses = std::max(options.state_guesses, 1u);  // buffers have at least one entry
  g.max_context = p.sizes.max_context;
  g.history_tokens = p.sizes.history_tokens;
  g.bias_entries = p.sizes.bias_entries;
  g.mask_words = p.sizes.mask_words;
  g.ring_entries = 2 * p.sizes.max_outputs + 1;  // the first entry of the ring holds the counts
  g.has_logprobs = target.has_logprobs;
  p.model = target.model;
  g.kv =
      p.model != nullptr ? p.model->graph_options.kv : choose_kv_type(options, *p.weights, p.config, target.kv_dtype);
  g.model = p.model != nullptr ? &p.model->config : nullptr;
  ZRT_TRY(g.pooling, choose_pooling(options, p.config));
  g.gives_features = (options.gives_features || options.part == ModelPart::kDraftBlock) && g.pooling == Pooling::kNone;
  g.feature_layers = options.feature_layers;
  // There is one buffer of features, which the host reads between two steps.
  g.keeps_tokens = options.run_ahead && target.has_operand_sets && g.pooling == Pooling::kNone && !g.gives_features;
  return {};
}

Result<ir::Graph> lower_graph(const ir::Graph& graph, const ExecutorOptions& options, const Target& target,
                              const ir::TensorLookup& tensors) {
  ZRT_CHECK_OK(ir::verify(graph, tensors));
  ZRT_TRY(auto fusion, lower::parse_fusion(options.fusion));
  if (target.kernels != nullptr) fusion = lower::with_kernels(fusion, *target.kernels);
  auto low = lower::fuse(graph, fusion);
  if (options.activations == Activations::kInt8) {
    ZRT_TRY(low, lower::quantize_activations(low));
  }
  ZRT_CHECK_OK(ir::verify(low, tensors));
  return low;
}

// Adds a COPY_ROWS over a buffer [entries, width]. The step's pairs (from, to) are in request.copy_from and
// request.copy_to.
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
  node.op = ir::Op::COPY_ROWS;
  node.inplace = true;
  node.n_inputs = 3;
  node.n_outputs = 1;
  node.inputs = {from, to, id};
  node.outputs = {id};
  graph.add_node(node);
}

// Returns a graph that copies recurrent state between slots and checkpoints. The state buffers hold a row for each
// slot, followed by a row for each checkpoint. So one packet can copy in both directions.
ir::Graph state_copy_graph(const ir::Graph& model) {
  ir::Graph graph("state_copy", ir::Stage::kBoth);
  for (const ir::Buffer& state : model.buffers()) {
    if (!is_copied_state(state)) continue;
    std::uint32_t width = 1;
    for (std::size_t i = 1; i < state.rank; ++i) width *= state.dims[i].n;
    add_copy(graph, state.name, state.dtype, state.dims[0], width);
  }
  return graph;
}

// Returns a graph that copies whole pages of all layers at once. A page counts as one row of f32 words, whatever the
// types of K and V.
ir::Graph page_copy_graph(std::uint32_t n_pages, std::uint64_t page_bytes) {
  ir::Graph graph("page_copy", ir::Stage::kBoth);
  if (page_bytes > 0)
    add_copy(graph, std::string(kWholePages), DType::kF32, n_pages, static_cast<std::uint32_t>(page_bytes / 4));
  return graph;
}

// Checks that the paged buffers of a graph that reads its model's KV pages are those of the model.
Status check_lent_pages(const Prepared& p) {
  if (p.model == nullptr) return {};
  for (const ir::Buffer& buffer : p.prefill.buffers()) {
    if (!is_paged(buffer)) continue;
    const ir::BufferId id = p.model->prefill.find(buffer.name);
    const auto row_of = [](const ir::Buffer& b) { return std::tuple(b.dtype, b.rank, b.dims[1].n, b.dims[2].n); };
    if (id == ir::kNoBuffer || row_of(p.model->prefill.buffer(id)) != row_of(buffer))
      return fail(StatusCode::kInternal, "[executor] {} reads {}, which {} has not", p.config.name, buffer.name,
                  p.model->config.name);
  }
  return {};
}

// Builds and lowers the prefill, decode and state copy graphs, as if the KV cache had one page. The number of pages is
// known only after the graphs are laid out. bind_pages() then sets it in these graphs, and builds the graph that copies
// pages.
Status build_graphs(const ExecutorOptions& options, const Target& target, Prepared& p) {
  const ir::TensorLookup tensors = [&](std::string_view name) -> std::optional<ir::TensorSpec> {
    const Tensor* tensor = p.weights->find(name);
    if (tensor == nullptr) return std::nullopt;
    ir::TensorSpec spec{tensor->dtype, {tensor->dims.begin(), tensor->dims.begin() + tensor->n_dims}};
    std::ranges::reverse(spec.dims);
    return spec;
  };
  const auto build = options.part == ModelPart::kDraftBlock ? p.family->build_draft : p.family->build;
  if (build == nullptr && p.family->build == nullptr)
    return fail(StatusCode::kUnavailable,
                "[executor] {} is no model: files of {} are draft models for the model that they were trained with",
                p.weights->path(), p.config.architecture);
  if (build == nullptr)
    return fail(StatusCode::kUnavailable, "[executor] {}: blocks for multi-token prediction of this family are not run",
                p.config.architecture);
  p.graph_options.stage = ir::Stage::kPrefill;
  ZRT_TRY(p.prefill, build(p.config, *p.weights, p.graph_options));
  p.graph_options.stage = ir::Stage::kDecode;
  ZRT_TRY(p.decode, build(p.config, *p.weights, p.graph_options));
  ZRT_CHECK_OK(check_lent_pages(p));
  ZRT_TRY(p.prefill_low, lower_graph(p.prefill, options, target, tensors));
  ZRT_TRY(p.decode_low, lower_graph(p.decode, options, target, tensors));
  p.logits_dim = width_of(p.prefill, "out.logits");
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

// Sets the number of KV pages in the graphs, and builds the graph that copies pages. No kernel needs to be chosen
// again, because none depends on the number of pages.
Status bind_pages(Prepared& p, std::uint32_t n_pages) {
  p.graph_options.n_pages = n_pages;
  for (ir::Graph* graph : {&p.prefill, &p.decode, &p.prefill_low, &p.decode_low})
    for (ir::Buffer& buffer : graph->mutable_buffers())
      if (is_paged(buffer)) buffer.dims[0] = n_pages;
  p.page_copy = page_copy_graph(n_pages, p.layout.page_bytes);
  return ir::verify(p.page_copy);
}

}  // namespace

std::uint32_t width_of(const ir::Graph& graph, std::string_view name) {
  const ir::BufferId id = graph.find(name);
  if (id == ir::kNoBuffer) return 0;
  const ir::Buffer& buffer = graph.buffer(id);
  return buffer.dims[buffer.rank - 1u].n;
}

Status shape(Prepared& p, const ExecutorOptions& options, const Target& target) {
  p.layout = {};
  ZRT_CHECK_OK(bind_sizes(options, target, p));
  p.graph_options.n_pages = 1;
  ZRT_CHECK_OK(build_graphs(options, target, p));
  p.layout = layout_with(p, options, target.maps_weights, Fit{.n_pages = 1});
  return {};
}

Result<Prepared> prepare(const std::string& path, const ExecutorOptions& options, const Target& target) {
  Prepared p;
  ZRT_TRY(auto weights, Weights::open(path));
  p.weights = std::make_unique<Weights>(std::move(weights));
  if (!options.lender.empty()) {
    ZRT_TRY(const auto architecture, p.weights->metadata().get_string("general.architecture"));
    ZRT_TRY(const arch::Family* family, arch::find_family(architecture));
    ZRT_TRY(auto lender, Weights::open(options.lender));
    p.weights->borrow(std::make_shared<const Weights>(std::move(lender)), family->loans);
  }
  if (!target.is_fast && options.activations == Activations::kInt8) p.weights->use_fixed16();
  ZRT_TRY(p.config, read_config(p.weights->metadata(), p.weights->infos()));
  ZRT_TRY(p.family, arch::find_family(p.config.architecture));
  ZRT_CHECK_OK(check_keys(p.weights->metadata(), p.config));
  ZRT_CHECK_OK(shape(p, options, target));
  Fit fit{options.kv_pages > 0
              ? options.kv_pages
              : default_pages(p.sizes, p.layout.page_bytes, machine_memory_bytes() / options.n_replicas)};
  if (target.budget != nullptr) {
    ZRT_TRY(fit, fit_device(p, options, target));
  }
  if (p.model != nullptr) fit.n_pages = p.model->graph_options.n_pages;
  ZRT_CHECK_OK(bind_pages(p, fit.n_pages));
  p.layout = layout_with(p, options, target.maps_weights, fit);
  return p;
}

}  // namespace zinc_rt
