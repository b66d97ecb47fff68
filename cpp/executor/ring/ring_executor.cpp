#include "executor/ring/ring_executor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "base/platform/machine_memory.h"
#include "executor/ring/fit.h"
#include "executor/rope_table.h"
#include "executor/rope_variants.h"
#include "kernels/common/kv_page.h"
#include "model/fixed16.h"

namespace zinc_rt {
namespace {

// The part of a file's tensor that a weight buffer of the graph uses. A tensor may hold several matrices, such as q, k
// and v.
struct WeightView {
  explicit WeightView(const ir::Buffer& buffer) : rank(buffer.rank) {
    rows = rank > 1 ? buffer.dims[rank - 2u].n : 1;
    k = buffer.dims[rank - 1u].n;
    row = row_bytes(buffer.dtype, k);
    first_row = buffer.first_row;
    rows_apart = buffer.tensor_rows > 0 ? buffer.tensor_rows : rows;
    for (std::size_t i = 0; i + 2 < rank; ++i) n_matrices *= buffer.dims[i].n;
    matrix = rows * row;
    pitch = rows_apart * row;
    offset = first_row * row;
    span = (n_matrices - 1) * pitch + matrix;
  }
  std::size_t rank;
  std::uint32_t k;
  std::uint64_t row, rows, n_matrices = 1;
  // first_row is the first used row within each matrix of the tensor. rows_apart is the number of rows from one matrix
  // to the next.
  std::uint64_t first_row, rows_apart;
  // matrix is the number of used bytes per matrix. pitch is the number of bytes from one matrix to the next.
  std::uint64_t matrix, pitch;
  std::uint64_t offset, span;
};

// Returns the bytes of scratch memory that a ring needs. It is called before anything is allocated, so each buffer is
// counted as a buffer object of its own.
Result<std::uint64_t> scratch_bytes(ring::Ring& ring, const Prepared& p) {
  std::uint64_t bytes = 0;
  lower::KernelCache cache;
  for (const ir::Graph* graph : p.run_graphs()) {
    ZRT_TRY(const auto batch,
            lower::lower(
                *graph, ring,
                [](ir::BufferId id) { return lower::Location{{static_cast<std::uint32_t>(id) + 1, 0, 1}, 0}; }, cache));
    bytes = std::max(bytes, ring.scratch_bytes(batch, {p.limits.max_tokens, p.limits.max_outputs}));
  }
  return bytes;
}

FeatureInput feature_input(const ir::Graph& graph) {
  const std::uint32_t width = width_of(graph, "request.features"), own = width_of(graph, "out.features");
  if (width <= own) return {.width = width, .of_model = width, .own_at = 0};
  return {.width = width, .of_model = width - own, .own_at = width - own};
}

// If the KV type stores keys in four bits, logs a warning for models that lose much quality by it. These are small
// models (one of 135M parameters loses 5 % of perplexity) and models whose keys have biases, because a bias uses up
// part of the four bits.
void warn_of_coarse_keys(const Prepared& p) {
  constexpr std::uint64_t kSmall = 1'000'000'000;
  const KvType& kv = p.graph_options.kv;
  if (!kv.has_coarse_keys) return;
  std::uint64_t n_parameters = 0;
  bool has_key_biases = false;
  for (const Tensor& tensor : p.weights->all()) {
    n_parameters += tensor.n_elements();
    has_key_biases = has_key_biases || tensor.name.ends_with(".attn_k.bias");
  }
  const char* ask = "`zinc-rt bench MODEL --kv-quality` measures it, and k8v4 costs far less";
  if (n_parameters < kSmall)
    log().warn("{}: kv_dtype {} costs a model of {} parameters (below {}) quality; {}", p.config.name, kv.name,
               n_parameters, kSmall, ask);
  if (has_key_biases)
    log().warn("{}: kv_dtype {} costs a model whose keys have biases much quality; {}", p.config.name, kv.name, ask);
}

}  // namespace

RingExecutor::~RingExecutor() {
  ring_.reset();
}  // reset first, because it may read from the mapped file

Result<std::unique_ptr<RingExecutor>> RingExecutor::open(const std::string& path, const ExecutorOptions& wanted) {
  ZRT_TRY(const ring::Tier* tier, ring::find_tier(wanted.tier));
  RingExecutor* const model = wanted.model != nullptr ? wanted.model->ring_executor() : nullptr;
  if (wanted.model != nullptr && (model == nullptr || model->info().tier != tier->name))
    return fail(StatusCode::kUnavailable,
                "[executor] {} reads the KV pages of {}, which runs on {} and lends none to {}", path,
                wanted.model->weights().path(), wanted.model->info().tier, tier->name);
  ExecutorOptions options = wanted;
  if (options.chunk_cap == 0) options.chunk_cap = tier->chunk_cap;
  if (model != nullptr) options.max_context = model->info().max_context;  // so page tables have the model's width
  auto executor = std::unique_ptr<RingExecutor>(new RingExecutor);
  ZRT_TRY(executor->ring_, tier->make_ring({.device = options.device,
                                            .threads = options.threads,
                                            .cpu_kernels = options.cpu_kernels,
                                            .repack = options.repack && options.activations == Activations::kInt8,
                                            .fast = options.arithmetic == Arithmetic::kFast}));
  // A tier that computes in host memory accepts an import of host memory, and other tiers refuse it. This import finds
  // out which kind the tier is.
  static constexpr std::byte kProbe[1]{};
  bool mapped = options.mmap && !executor->ring_->repacks_weights();
  if (mapped) {
    const auto probe = executor->ring_->import_host(kProbe);
    mapped = probe.has_value();
    if (probe) executor->ring_->free_bo(*probe);
  }
  if (const KvType* kv = options.kv_type) {
    const auto& kernels = executor->ring_->kernels();
    ZRT_CHECK_OK(check_kv_type(*kv, tier->name,
                               [&](DType cells) { return kernels.find(ir::Op::FLASH_ATTN, cells) != nullptr; }));
  }
  ZRT_TRY(const auto memory, executor->ring_->device_memory());
  DeviceBudget budget;
  if (memory)
    // Experts in host memory cannot be paged out, so an eighth of the host's memory is left for everything else.
    budget = {memory->free, memory->total, machine_memory_bytes() / options.n_replicas / 8 * 7,
              [&](const Prepared& p) { return scratch_bytes(*executor->ring_, p); }};
  // LOGPROBS saves the copy of logits to the host. A tier that computes in host memory has no such copy, and the host's
  // own code (engine/logprobs.h) is faster than the reference kernel.
  const bool has_logprobs = memory && executor->ring_->kernels().has(ir::Op::LOGPROBS);
  ZRT_TRY(executor->prepared_, prepare(path, options,
                                       {.maps_weights = mapped,
                                        .budget = memory ? &budget : nullptr,
                                        .joins = executor->ring_->joins(),
                                        .kernels = &executor->ring_->kernels(),
                                        .has_operand_sets = executor->ring_->has_operand_sets(),
                                        .is_fast = executor->ring_->is_fast(),
                                        .kv_dtype = executor->ring_->is_fast() ? tier->fast_kv_dtype : "",
                                        .has_logprobs = has_logprobs,
                                        .model = model != nullptr ? &model->prepared() : nullptr}));
  const auto& p = executor->prepared_;
  // A tier without a kernel for POOL_MEAN refuses all models with embeddings, even if their pooling is not the mean.
  if (p.graph_options.pooling != Pooling::kNone &&
      executor->ring_->kernels().find(ir::Op::POOL_MEAN, DType::kF32) == nullptr)
    return fail(StatusCode::kUnavailable,
                "[executor] tier {} has no kernel for POOL_MEAN: it gives no embeddings (pooling {})", tier->name,
                to_string(p.graph_options.pooling));
  warn_of_coarse_keys(p);
  executor->info_ = {.family = std::string(p.family->name),
                     .tier = tier->name,
                     .device = executor->ring_->describe(),
                     .arithmetic = executor->ring_->is_fast() ? Arithmetic::kFast : Arithmetic::kExact,
                     .activations = options.activations,
                     .fusion = options.fusion,
                     .kv_dtype = std::string(p.graph_options.kv.name),
                     .pooling = p.graph_options.pooling,
                     .embedding_dim = embedding_dim(p.graph_options.pooling, p.config),
                     .needs_whole_texts = !p.config.is_causal,
                     .has_logprobs = has_logprobs && p.graph_options.pooling == Pooling::kNone,
                     .max_slots = p.sizes.max_slots,
                     .max_context = p.sizes.max_context,
                     .n_pages = p.graph_options.n_pages,
                     .chunk_cap = p.sizes.max_tokens,
                     .page_bytes = p.layout.page_bytes,
                     .kv_bytes_per_token = p.layout.page_bytes / kPageTokens,
                     .runs_ahead = p.graph_options.keeps_tokens,
                     .n_state_checkpoints = options.state_checkpoints,
                     .feature_dim = width_of(p.prefill, "out.features"),
                     .reads = feature_input(p.prefill),
                     .reads_model_pages = p.model != nullptr,
                     .rope_limits = rope_limits(*p.family, p.config, *p.weights, p.sizes.max_context),
                     .n_host_expert_layers = p.layout.n_host_expert_layers,
                     .host_expert_bytes = p.layout.host_expert_bytes};
  for (const ir::Buffer& buffer : p.state_copy.buffers())
    if (buffer.buffer_class == ir::BufferClass::kState)
      executor->info_.state_bytes_per_slot += p.layout.locations.at(buffer.name).pitch;
  if (p.layout.locations.contains("request.state_runs")) {
    executor->info_.state_guesses = options.state_guesses;
    executor->saved_half_.resize(p.sizes.max_slots);
  }
  if (p.layout.n_host_expert_layers > 0)
    log().warn(
        "{}: the device has no room for the experts of {} of {} layers; their {} bytes lie in host memory, "
        "which it reads over the bus",
        p.config.name, p.layout.n_host_expert_layers, p.config.n_layers, p.layout.host_expert_bytes);
  ZRT_CHECK_OK(executor->allocate_regions());
  if (executor->info_.reads_model_pages) ZRT_CHECK_OK(executor->import_pages(*options.model->ring_executor()));
  ZRT_CHECK_OK(executor->load_weights(options, mapped));
  ZRT_CHECK_OK(executor->fill_constants());
  ZRT_CHECK_OK(executor->lower_graphs());
  ZRT_CHECK_OK(executor->bind_views());
  executor->check_ = StepCheck({.sizes = p.sizes,
                                .n_pages = p.graph_options.n_pages,
                                .vocab_size = p.config.vocab_size,
                                .n_rope_variants = executor->n_rope_variants_,
                                .n_token_types = executor->prepared_.config.n_token_types,
                                .needs_whole_texts = executor->info_.needs_whole_texts,
                                .has_logprobs = executor->info_.has_logprobs,
                                .state_guesses = executor->info_.state_guesses,
                                .read_features = executor->info_.reads.width});
  if (executor->info_.has_logprobs) executor->logprobs_.reserve(p.sizes.max_outputs);
  return executor;
}

// Allocates all regions before it reads the first weight, so that a lack of memory shows at once.
Status RingExecutor::allocate_regions() {
  for (const MemoryRegion& region : prepared_.layout.plan.regions) {
    if (region.mapped) continue;
    ZRT_TRY(regions_[region.name], ring_->alloc_bo(region.bytes, region.heap));
  }
  const auto scratch = regions_.find("scratch");
  return scratch == regions_.end() ? Status{} : ring_->use_scratch(scratch->second);
}

// Makes the KV pages of the model those of this draft block.
Status RingExecutor::import_pages(RingExecutor& model) {
  ZRT_TRY(regions_[std::string(kPages)], ring_->import_bo(*model.ring_, model.regions_.at(std::string(kPages))));
  return {};
}

Status RingExecutor::load_weights(const ExecutorOptions& options, bool mapped) {
  const auto& weights = *prepared_.weights;
  std::vector<std::byte> converted;  // a matrix after conversion, if the file has it in another type
  std::uint64_t done = 0;
  const std::uint64_t total = weights.total_bytes();
  const auto report = [&](std::uint64_t bytes) {
    done += bytes;
    if (options.on_progress) options.on_progress(std::min(done, total), total);
  };
  const auto add = [&](const ir::Buffer& buffer) -> Status {
    if (buffer.buffer_class != ir::BufferClass::kWeight || weight_locations_.contains(buffer.name)) return {};
    const WeightView view(buffer);
    const Tensor& tensor = *weights.find(buffer.tensor);
    if (mapped && tensor.dtype == tensor.stored) {
      ZRT_TRY(const auto bo, ring_->import_host(tensor.data.subspan(view.offset, view.span)));
      weight_locations_[buffer.name] = {{bo.id, 0, view.span}, view.rank > 2 ? view.pitch : view.row};
    } else {
      const RegionSpan& span = prepared_.layout.locations.at(buffer.name);
      const ring::Buffer& region = regions_.at(span.region);
      for (std::uint64_t i = 0; i < view.n_matrices; ++i) {
        auto data = std::span<const std::byte>();
        if (tensor.dtype == tensor.stored) {
          data = tensor.data.subspan(view.offset + i * view.pitch, view.matrix);
        } else {
          converted.resize(view.matrix);
          weights.copy_rows(tensor, view.first_row + i * view.rows_apart, view.rows, converted.data(),
                            conversion_threads());
          data = converted;
        }
        ZRT_CHECK_OK(ring_->upload(region, span.offset + i * view.matrix,
                                   {buffer.dtype, static_cast<std::uint32_t>(view.rows), view.k, data}));
      }
      weights.release(tensor);
      weight_locations_[buffer.name] = {{region.id, span.offset, view.n_matrices * view.matrix},
                                        view.rank > 2 ? view.matrix : view.row};
    }
    report(view.n_matrices * view.matrix);
    return {};
  };
  for (const ir::Graph* graph : {&prepared_.prefill_low, &prepared_.decode_low})
    for (const ir::Buffer& buffer : graph->buffers()) ZRT_CHECK_OK(add(buffer));
  has_mapped_weights_ = mapped;
  ZRT_CHECK_OK(weights.is_whole());
  if (options.on_progress) options.on_progress(total, total);
  return {};
}

Status RingExecutor::lower_graphs() {
  lower::KernelCache cache;
  const auto lower_stage = [&](const ir::Graph& graph, const lower::ActivationMap& activations) {
    return lower::lower(graph, *ring_, [&](ir::BufferId id) { return locate(graph, activations, id); }, cache);
  };
  ZRT_TRY(prefill_, lower_stage(prepared_.prefill_low, prepared_.layout.activations[0]));
  ZRT_TRY(decode_, lower_stage(prepared_.decode_low, prepared_.layout.activations[1]));
  ZRT_TRY(state_copy_, lower_stage(prepared_.state_copy, prepared_.layout.activations[2]));
  ZRT_TRY(page_copy_, lower_stage(prepared_.page_copy, prepared_.layout.activations[3]));
  return {};
}

Status RingExecutor::fill_constants() {
  std::size_t n_filled = 0;
  for (const auto& table : prepared_.family->rope_tables(prepared_.config, *prepared_.weights)) {
    const auto span = prepared_.layout.locations.find("const." + table.name);
    if (span == prepared_.layout.locations.end()) continue;  // no layer of this model reads the table
    ++n_filled;
    n_rope_variants_ = std::max(n_rope_variants_, static_cast<std::uint32_t>(table.variants.size()));
    std::vector<float> values(span->second.bytes / sizeof(float));
    fill_rope_table(table, prepared_.graph_options.max_context, values);
    ZRT_CHECK_OK(ring_->write(regions_.at(span->second.region), span->second.offset, std::as_bytes(std::span(values))));
  }
  const auto is_constant = [](const auto& entry) { return entry.first.starts_with("const."); };
  const auto n_wanted = static_cast<std::size_t>(std::ranges::count_if(prepared_.layout.locations, is_constant));
  if (n_filled != n_wanted)
    return fail(StatusCode::kInternal, "[executor] the graph reads {} RoPE tables, the family names {} of them",
                n_wanted, n_filled);
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
  const RegionSpan& span = prepared_.layout.locations.at(buffer.name);
  return lower::Location{{regions_.at(span.region).id, span.offset, span.bytes}, span.pitch};
}

Result<std::span<std::byte>> RingExecutor::host_view(const std::string& name) const {
  const auto span = prepared_.layout.locations.find(name);
  if (span == prepared_.layout.locations.end())
    return fail(StatusCode::kInternal, "[executor] the graph has no buffer {}", name);
  ZRT_TRY(const auto memory, ring_->map(regions_.at(span->second.region)));
  return memory.subspan(span->second.offset, span->second.bytes);
}

Status RingExecutor::bind_views() {
  const auto bind = [this]<class T>(T*& to, std::string_view name) -> Status {
    ZRT_TRY(const auto view, host_view(std::string(name)));
    to = reinterpret_cast<T*>(view.data());
    return {};
  };
  // Only some graphs have the following buffers: those that pick tokens, have RoPE variants, are encoders, or copy
  // states.
  const auto bind_if_used = [&]<class T>(T*& to, std::string_view name) -> Status {
    return prepared_.layout.locations.contains(std::string(name)) ? bind(to, name) : Status{};
  };
  Views& views = views_[0];
  ZRT_CHECK_OK(bind(views.token_ids, "request.token_ids"));
  ZRT_CHECK_OK(bind(views.positions, "request.positions"));
  ZRT_CHECK_OK(bind(views.slots, "request.slots"));
  ZRT_CHECK_OK(bind(views.page_table, "request.page_table"));
  ZRT_CHECK_OK(bind(views.output_rows, "request.output_rows"));
  ZRT_CHECK_OK(bind_if_used(views.output_slots, "request.output_slots"));
  ZRT_CHECK_OK(bind_if_used(views.history, "request.history"));
  ZRT_CHECK_OK(bind_if_used(views.bias, "request.bias"));
  ZRT_CHECK_OK(bind_if_used(views.mask, "request.mask"));
  ZRT_CHECK_OK(bind_if_used(views.sampling, "request.sampling"));
  ZRT_CHECK_OK(bind_if_used(views.tokens, "host_ring.tokens"));
  ZRT_CHECK_OK(bind_if_used(views.wanted_logprobs, "request.logprobs"));
  ZRT_CHECK_OK(bind_if_used(views.logprobs, "host_ring.logprobs"));
  ZRT_CHECK_OK(bind_if_used(views.rope_positions, "request.rope_positions"));
  ZRT_CHECK_OK(bind_if_used(views.text_ends, "request.text_ends"));
  ZRT_CHECK_OK(bind_if_used(views.token_types, "request.token_types"));
  ZRT_CHECK_OK(bind_if_used(views.state_runs, "request.state_runs"));
  ZRT_CHECK_OK(bind_if_used(views.features, "request.features"));
  ZRT_CHECK_OK(bind_if_used(views.copy_from, "request.copy_from"));
  ZRT_CHECK_OK(bind_if_used(views.copy_to, "request.copy_to"));
  views_[1] = views;
  if (!info_.runs_ahead) return {};
  const Layout& layout = prepared_.layout;
  const auto shift = []<class T>(T*& view, std::uint64_t stride) {
    using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
    if (view != nullptr) view = reinterpret_cast<T*>(reinterpret_cast<Byte*>(view) + stride);
  };
  Views& second = views_[1];
  for (std::int32_t** view :
       {&second.token_ids, &second.positions, &second.slots, &second.page_table, &second.rope_positions,
        &second.text_ends, &second.token_types, &second.output_rows, &second.output_slots, &second.history})
    shift(*view, layout.operand_stride);
  for (std::uint32_t** view : {&second.bias, &second.mask}) shift(*view, layout.operand_stride);
  shift(second.state_runs, layout.operand_stride);
  shift(second.sampling, layout.operand_stride);
  shift(second.wanted_logprobs, layout.operand_stride);
  ZRT_CHECK_OK(ring_->use_operand_sets(regions_.at("step_descriptor"), layout.operand_stride));
  if (views.logprobs == nullptr) return {};
  shift(second.logprobs, layout.logprob_stride);
  return ring_->use_operand_sets(regions_.at("logprobs"), layout.logprob_stride);
}

std::uint32_t RingExecutor::rope_variant(std::uint64_t n_tokens) const {
  return zinc_rt::rope_variant(*prepared_.family, prepared_.config, *prepared_.weights, n_tokens);
}

}  // namespace zinc_rt
