#include "vulkan/vulkan_executor.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "base/log.h"
#include "kernels/common/kv_page.h"
#include "kernels/vulkan/push.h"
#include "model/config_keys.h"
#include "vulkan/devices.h"

namespace zinc_rt::vulkan {
namespace {

// The types that the cells of the KV cache may have.
constexpr DType kCells[] = {DType::kF16, DType::kF32, DType::kQ8_0, DType::kI16};

}  // namespace

Result<std::unique_ptr<Executor>> VulkanExecutor::open(const std::string& path, const ExecutorOptions& options) {
  ZRT_TRY(auto device, open_proven_device());
  return open_on(std::move(device), path, options);
}

Result<std::unique_ptr<Executor>> VulkanExecutor::open_on(std::shared_ptr<Device> device, const std::string& path,
                                                          const ExecutorOptions& options) {
  ZRT_CHECK_OK(device->free_all());
  auto executor = std::unique_ptr<VulkanExecutor>(new VulkanExecutor);
  executor->device_ = std::move(device);
  ZRT_TRY(auto weights, Weights::open(path));
  executor->weights_ = std::make_unique<Weights>(std::move(weights));
  ZRT_CHECK_OK(executor->load(options));
  return executor;
}

Status VulkanExecutor::load(const ExecutorOptions& options) {
  if (options.activations == Activations::kInt8) weights_->use_fixed16();
  ZRT_TRY(config_, read_config(weights_->metadata(), weights_->infos()));
  ZRT_TRY(shape_, describe(config_, *weights_));
  ZRT_CHECK_OK(check_keys(weights_->metadata(), config_));
  ZRT_TRY(tensors_, find_tensors(config_, shape_, *weights_));
  ZRT_TRY(sizes_, choose_sizes(options, config_));
  ZRT_TRY(const Pooling pooling, choose_pooling(options, config_));
  if (pooling != Pooling::kNone)
    return fail(StatusCode::kUnavailable,
                "[vulkan] pooling {} is not there, so the model gives no embeddings here; t_cpu and t_cuda have it",
                to_string(pooling));
  const KvType kv = choose_kv_type(options, *weights_, config_);
  ZRT_CHECK_OK(
      check_kv_type(kv, "vulkan", [](DType cells) { return std::ranges::find(kCells, cells) != std::end(kCells); }));
  request_.reset(new MemoryRequest{config_, shape_, tensors_, sizes_, kv.k, options.kv_pages});
  const MemoryRequest& request = *request_;
  ZRT_TRY(memory_, allocate_model(*device_, request));
  ZRT_CHECK_OK(load_model(*device_, request, *weights_, memory_, options.on_progress));
  ZRT_TRY(forward_, Forward::record(*device_, request, memory_, options.activations == Activations::kInt8));
  if (options.arithmetic == Arithmetic::kFast)
    log().info("{}: arithmetic \"fast\" was asked for, tier vulkan has \"exact\" alone", config_.name);
  info_ = {
      .family = std::string(shape_.family),
      .tier = "vulkan",
      .device = fmt::format("{} ({}), fma {}", device_->info().name, device_->info().driver, to_string(device_->fma())),
      .arithmetic = Arithmetic::kExact,
      .activations = options.activations,
      .fusion = options.fusion,
      .kv_dtype = std::string(kv.name),
      .max_slots = sizes_.max_slots,
      .max_context = sizes_.max_context,
      .n_pages = memory_.n_pages,
      .chunk_cap = sizes_.max_tokens,
      .page_bytes = memory_.page_bytes,
      .kv_bytes_per_token = memory_.page_bytes / kPageTokens,
      .n_state_checkpoints = options.state_checkpoints,
      .state_bytes_per_slot = memory_.state_bytes(),
      .rope_limits = rope_limits(shape_, sizes_.max_context)};
  check_ = StepCheck({.sizes = sizes_,
                      .n_pages = memory_.n_pages,
                      .vocab_size = config_.vocab_size,
                      .n_rope_variants = static_cast<std::uint32_t>(shape_.rope_tables[0].size())});
  return {};
}

void VulkanExecutor::fill_body(const StepInput& input) {
  const StepLocations& step = memory_.step;
  std::ranges::copy(input.token_ids, memory_.host<std::int32_t>(step.token_ids));
  std::ranges::copy(input.positions, memory_.host<std::int32_t>(step.positions));
  std::ranges::copy(input.slots, memory_.host<std::int32_t>(step.slots));
  const std::size_t width = info_.max_context / kPageTokens, n = input.slots.size();
  auto* runs = memory_.host<std::uint32_t>(step.runs);
  rows_ = {.n_tokens = static_cast<std::uint32_t>(n)};
  for (std::size_t i = 0; i < n; ++i) {
    const auto slot = static_cast<std::size_t>(input.slots[i]);
    if (i == 0 || input.slots[i - 1] != input.slots[i]) {
      runs[2 * rows_.n_runs] = static_cast<std::uint32_t>(i);
      runs[2 * rows_.n_runs++ + 1] = 0;
    }
    ++runs[2 * rows_.n_runs - 1];
    rows_.n_chunks = std::max(rows_.n_chunks, static_cast<std::uint32_t>(input.positions[i]) / push::kAttendWidth + 1);
    const std::uint32_t variant = input.rope_variants.empty() ? 0 : input.rope_variants[slot];
    memory_.host<std::uint32_t>(step.rope_positions)[i] =
        static_cast<std::uint32_t>(input.positions[i]) + variant * info_.max_context;
    // Only the last position of a slot counts here, because it reads the most pages.
    if (i + 1 < n && input.slots[i + 1] == input.slots[i]) continue;
    const auto pages = input.page_tables.ids.subspan(slot * input.page_tables.width,
                                                     static_cast<std::size_t>(input.positions[i]) / kPageTokens + 1);
    std::ranges::copy(pages, memory_.host<std::uint32_t>(step.pages) + slot * width);
  }
}

std::span<float> VulkanExecutor::logits_row(std::size_t i) const {
  return {memory_.host<float>(memory_.host_logits) + i * config_.vocab_size, config_.vocab_size};
}

// Picks the tokens of a group of rows. All processed rows are passed to the caller before any row is picked.
Status VulkanExecutor::pick(const StepInput& input, std::size_t first, std::size_t count, StepOutput& output) {
  const auto is_processed = [&](const OutputRow& row) { return input.process && row.is_processed; };
  processed_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_processed(input.outputs[first + i])) continue;
    const auto row = logits_row(i);
    processed_.insert(processed_.end(), row.begin(), row.end());
    input.process(static_cast<std::uint32_t>(first + i), std::span(processed_).last(row.size()));
  }
  std::span<const float> next = processed_;
  for (std::size_t i = 0; i < count; ++i) {
    const OutputRow& row = input.outputs[first + i];
    if (takes_largest(row)) {
      output.tokens.push_back(memory_.host<std::int32_t>(memory_.best_tokens)[i]);
      continue;
    }
    std::span<const float> logits = logits_row(i);
    if (is_processed(row)) {
      logits = next.first(config_.vocab_size);
      next = next.subspan(config_.vocab_size);
    }
    std::span<const std::uint32_t> mask;
    if (row.is_masked) mask = input.mask(static_cast<std::uint32_t>(first + i));
    ZRT_CHECK_OK(check_.check_mask(mask));
    output.tokens.push_back(sampler_.pick(row, mask, logits));
  }
  return {};
}

// Passes the rows that want logits to the caller, with one call per run of neighbouring rows.
void VulkanExecutor::give_logits(const StepInput& input, std::size_t first, std::size_t count) const {
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i;
    while (end < count && input.outputs[first + end].wants_logits) ++end;
    if (end > i)
      input.on_logits(static_cast<std::uint32_t>(first + i), {logits_row(i).data(), (end - i) * config_.vocab_size});
    i = end + 1;
  }
}

std::size_t VulkanExecutor::group_size(std::size_t first) const {
  return std::min<std::size_t>(sizes_.max_outputs, input_->outputs.size() - first);
}

Status VulkanExecutor::begin_group(std::size_t first) {
  const std::size_t count = group_size(first);
  const auto group = std::span(input_->outputs).subspan(first, count);
  auto* rows = memory_.host<std::uint32_t>(memory_.step.output_rows);
  for (std::size_t i = 0; i < count; ++i) rows[i] = group[i].token_index;
  rows_.n_outputs = static_cast<std::uint32_t>(count);
  forward_.set_rows(rows_);
  if (count > 0) commands_.push_back(forward_.head(count));
  const auto wants_logits = [&](const OutputRow& row) {
    return !takes_largest(row) || (row.wants_logits && input_->on_logits);
  };
  if (std::ranges::any_of(group, takes_largest)) commands_.push_back(forward_.largest_logits());
  if (std::ranges::any_of(group, wants_logits)) commands_.push_back(forward_.logits_copy());
  return device_->submit(commands_);
}

Status VulkanExecutor::begin(const StepInput& input) {
  ZRT_CHECK_OK(check_.check(input));
  input_ = &input;
  fill_body(input);
  // The body is submitted together with the first group of output rows.
  commands_ = {forward_.body(input.token_ids.size())};
  return begin_group(0);
}

Status VulkanExecutor::finish(StepOutput& output) {
  output.tokens.clear();
  for (std::size_t first = 0;;) {
    const std::size_t count = group_size(first);
    ZRT_CHECK_OK(device_->wait());
    ZRT_CHECK_OK(pick(*input_, first, count, output));
    if (input_->on_logits) give_logits(*input_, first, count);
    first += count;
    if (first >= input_->outputs.size()) return {};
    commands_.clear();
    ZRT_CHECK_OK(begin_group(first));
  }
}

Result<std::vector<float>> VulkanExecutor::hidden(const StepInput& input, int layer) {
  ZRT_CHECK_OK(check_.check(input));
  if (layer < -1 || layer >= static_cast<int>(config_.n_layers))
    return fail(StatusCode::kInvalidArgument, "[vulkan] layer {} is not from -1 to {}", layer, config_.n_layers - 1);
  fill_body(input);
  const std::size_t n_tokens = input.token_ids.size();
  ZRT_TRY(const auto commands,
          forward_.record_stream(*device_, *request_, n_tokens, static_cast<std::size_t>(layer + 1)));
  forward_.set_rows(rows_);
  const Status status = device_->run({&commands, 1});
  device_->free(commands);
  ZRT_CHECK_OK(status);
  std::vector<float> values(n_tokens * config_.model_dim);
  const Location hidden = memory_.activations.hidden;
  ZRT_CHECK_OK(device_->read(memory_.buffers[hidden.region], hidden.offset, std::as_writable_bytes(std::span(values))));
  return values;
}

Status VulkanExecutor::copy_state(std::span<const StateCopy> copies) {
  ZRT_CHECK_OK(check_.check(copies));
  std::vector<Device::Copy> parts;
  for (const auto& state : memory_.states) {
    if (!state) continue;
    for (const StatePart& part : {state->conv, state->delta}) {
      const VkBuffer entries = memory_.buffers[part.location.region].handle;
      const auto at = [&](std::uint32_t entry) { return part.location.offset + entry * part.entry_bytes; };
      for (const StateCopy& copy : copies)
        parts.push_back({entries, entries, {at(copy.from), at(copy.to), part.entry_bytes}});
    }
  }
  return parts.empty() ? Status() : device_->copy(parts);
}

Status VulkanExecutor::copy_pages(std::span<const PageCopy> copies) {
  ZRT_CHECK_OK(check_.check(copies));
  if (copies.empty()) return {};
  std::vector<Device::Copy> parts;
  for (const auto& cache : memory_.caches) {
    if (!cache) continue;
    const std::uint64_t bytes = cache->shape.page_bytes;
    const VkBuffer pages = memory_.buffers[cache->location.region].handle;
    for (const PageCopy& copy : copies) parts.push_back({pages, pages, {copy.from * bytes, copy.to * bytes, bytes}});
  }
  return device_->copy(parts);
}

Status VulkanExecutor::check_pages(std::span<const std::uint32_t> pages, std::size_t n_bytes) const {
  if (n_bytes != pages.size() * info_.page_bytes)
    return fail(StatusCode::kInvalidArgument, "[vulkan] {} bytes for {} pages of {}", n_bytes, pages.size(),
                info_.page_bytes);
  for (const std::uint32_t page : pages)
    if (page >= info_.n_pages)
      return fail(StatusCode::kInvalidArgument, "[vulkan] page {}, there are {}", page, info_.n_pages);
  return {};
}

// Copies pages to the host. In host memory, a page consists of its parts in each layer, one layer after another.
Status VulkanExecutor::read_pages(std::span<const std::uint32_t> pages, std::span<std::byte> to) {
  ZRT_CHECK_OK(check_pages(pages, to.size()));
  for (const std::uint32_t page : pages)
    for (const auto& cache : memory_.caches) {
      if (!cache) continue;
      const std::uint64_t bytes = cache->shape.page_bytes;
      ZRT_CHECK_OK(device_->read(memory_.buffers[cache->location.region], page * bytes, to.first(bytes)));
      to = to.subspan(bytes);
    }
  return {};
}

Status VulkanExecutor::write_pages(std::span<const std::uint32_t> pages, std::span<const std::byte> from) {
  ZRT_CHECK_OK(check_pages(pages, from.size()));
  for (const std::uint32_t page : pages)
    for (const auto& cache : memory_.caches) {
      if (!cache) continue;
      const std::uint64_t bytes = cache->shape.page_bytes;
      ZRT_CHECK_OK(device_->write(memory_.buffers[cache->location.region], page * bytes, from.first(bytes)));
      from = from.subspan(bytes);
    }
  return {};
}

}  // namespace zinc_rt::vulkan
