#include "engine/core.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "engine/card.h"

namespace zinc_rt {
namespace {

Result<ExecutorOptions> executor_options(const EngineOptions& options) {
  ExecutorOptions out;
  out.tier = options.tier.empty() || options.tier == "auto" ? options::get("ZINC_RT_TIER") : options.tier;
  out.max_slots = options.max_slots;
  out.kv_pages = options.kv_pages;
  out.max_context = options.max_context;
  out.kv_dtype = options.kv_dtype;
  out.activations = options.activations;
  out.mmap = options.mmap;
  out.on_progress = options.on_progress;
  out.fusion = options.fusion.empty() ? options::get("ZINC_RT_FUSION") : options.fusion;
  ZRT_TRY(const auto threads, options::get_int("ZINC_RT_CPU_WORKERS", 0, 1024));
  out.threads = options.threads > 0 ? options.threads : static_cast<int>(threads);
  if (options.threads < 0 || options.threads > 1024)
    return fail(StatusCode::kInvalidArgument, "[engine] threads is {}, 0 to 1024 allowed", options.threads);
  ZRT_TRY(const auto chunk, options::get_int("ZINC_RT_CHUNK_CAP", 0, 1 << 20));
  out.chunk_cap = options.chunk_cap > 0 ? options.chunk_cap : static_cast<std::uint32_t>(chunk);
  if (const auto kernels = options::get("ZINC_RT_CPU_KERNELS"); kernels != "ref")
    return fail(StatusCode::kUnavailable, "[options] ZINC_RT_CPU_KERNELS={} is not in this build; it has: ref",
                kernels);
  return out;
}

Result<PrefillMode> parse_prefill_mode() {
  const auto text = options::get("ZINC_RT_BATCHED_PREFILL");
  if (text == "1") return PrefillMode::kBatched;
  if (text == "0") return PrefillMode::kTokenByToken;
  if (text == "validate") return PrefillMode::kValidate;
  return fail(StatusCode::kInvalidArgument, "[options] ZINC_RT_BATCHED_PREFILL={} is not one of 1, 0, validate", text);
}

}  // namespace

Result<std::shared_ptr<EngineCore>> EngineCore::open(const std::string& model, const EngineOptions& options) {
  auto core = std::make_shared<EngineCore>();
  ZRT_TRY(const auto wanted, executor_options(options));
  ZRT_TRY(core->prefill_mode_, parse_prefill_mode());
  const auto arithmetic = options.arithmetic.empty() ? options::get("ZINC_RT_ARITH") : options.arithmetic;
  if (arithmetic != "exact" && arithmetic != "fast")
    return fail(StatusCode::kInvalidArgument, "[engine] arithmetic \"{}\" is not one of exact, fast", arithmetic);
  ZRT_TRY(core->executor_, open_executor(model, wanted));
  core->info_ = core->executor_->info();
  core->config_ = core->executor_->config();
  core->arithmetic_ = core->info_.arithmetic;
  if (arithmetic != core->arithmetic_)
    log().info("arithmetic {} was asked for; tier {} has only {} kernels, which fast allows", arithmetic,
               core->info_.tier, core->arithmetic_);
  const auto& metadata = core->executor_->weights().metadata();
  ZRT_TRY(core->tokenizer_, Tokenizer::from_metadata(metadata));
  if (core->tokenizer_->n_vocab() != core->config_.vocab_size)
    log().warn("the vocabulary has {} tokens, the model {} rows", core->tokenizer_->n_vocab(),
               core->config_.vocab_size);
  if (const auto source = metadata.get_string("tokenizer.chat_template")) {
    auto parsed = ChatTemplate::parse(std::string(*source));
    if (parsed)
      core->template_ = std::move(*parsed);
    else
      core->template_error_ = parsed.error();
  } else {
    core->template_error_ = {
        StatusCode::kUnavailable,
        "[chat_template] the model file has none (key tokenizer.chat_template); give a prompt instead", 0};
  }
  core->model_card_ = make_model_card(*core->executor_, *core->tokenizer_);
  core->memory_plan_ = make_plan_json(core->executor_->plan(), core->info_);
  core->pages_.emplace(core->info_.n_pages);
  for (std::uint32_t slot = core->info_.max_slots; slot > 0; --slot) core->free_slots_.push_back(slot - 1);
  return core;
}

Status EngineCore::check_open() const {
  if (is_closed()) return fail(StatusCode::kUnavailable, "[engine] the engine is closed");
  return {};
}

void EngineCore::close() {
  closed_.store(true);
  const std::lock_guard lock(mutex_);
  executor_.reset();
}

Result<std::string> EngineCore::render(std::string_view messages, std::string_view tools, bool add_generation_prompt,
                                       std::string_view extra) const {
  if (!template_) return std::unexpected(template_error_);
  using Json = nlohmann::ordered_json;
  Json context = Json::object();
  const auto add = [&](const char* name, std::string_view text, Json::value_t type) -> Result<Json> {
    auto value = Json::parse(text, nullptr, false);
    if (value.is_discarded() || value.type() != type)
      return fail(StatusCode::kInvalidArgument, "[chat_template] {} is not a JSON {}", name,
                  type == Json::value_t::array ? "list" : "object");
    return value;
  };
  if (!extra.empty()) {
    ZRT_TRY(context, add("extra", extra, Json::value_t::object));
  }
  ZRT_TRY(context["messages"], add("messages", messages, Json::value_t::array));
  if (!tools.empty()) {
    ZRT_TRY(context["tools"], add("tools", tools, Json::value_t::array));
  }
  // As transformers calls its templates: these are there, as none, when they are not given.
  for (const char* name : {"tools", "documents"})
    if (!context.contains(name)) context[name] = nullptr;
  context["add_generation_prompt"] = add_generation_prompt;
  const auto text = [&](std::optional<std::int32_t> id) {
    return id ? std::string(tokenizer_->token_text(*id)) : std::string();
  };
  if (!context.contains("bos_token")) context["bos_token"] = text(tokenizer_->bos_id());
  if (!context.contains("eos_token")) context["eos_token"] = text(tokenizer_->eos_id());
  return template_->render(context);
}

Result<EngineCore::Lease> EngineCore::lease(std::uint64_t n_tokens) {
  if (n_tokens > info_.max_context)
    return fail(StatusCode::kInvalidArgument, "[engine] {} tokens, the context has {}", n_tokens, info_.max_context);
  const std::lock_guard lock(mutex_);
  ZRT_CHECK_OK(check_open());
  if (free_slots_.empty()) return fail(StatusCode::kExhausted, "[engine] needs 1 slot, 0 free of {}", info_.max_slots);
  Lease lease;
  ZRT_TRY(lease.pages, pages_->take(mem::pages_for(n_tokens)));
  lease.slot = free_slots_.back();
  free_slots_.pop_back();
  return lease;
}

void EngineCore::give_back(const Lease& lease) {
  const std::lock_guard lock(mutex_);
  if (auto status = pages_->give_back(lease.pages); !status) log().error("{}", status.error().message);
  free_slots_.push_back(lease.slot);
}

EngineCore::LeaseStep::LeaseStep(const Lease& lease, std::span<const std::int32_t> ids, std::size_t begin,
                                 std::size_t n)
    : pages((lease.slot + 1) * lease.pages.size()), counts(lease.slot + 1), variants(lease.slot + 1) {
  input.token_ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(begin),
                         ids.begin() + static_cast<std::ptrdiff_t>(begin + n));
  for (std::size_t i = 0; i < n; ++i) input.positions.push_back(static_cast<std::int32_t>(begin + i));
  input.slots.assign(n, static_cast<std::int32_t>(lease.slot));
  std::ranges::copy(lease.pages, pages.end() - static_cast<std::ptrdiff_t>(lease.pages.size()));
  counts.back() = static_cast<std::uint32_t>(lease.pages.size());
  variants.back() = lease.rope_variant;
  input.page_tables = {pages, counts.back(), counts};
  input.rope_variants = variants;
}

Result<StepOutput> EngineCore::step(const Lease& lease, std::span<const std::int32_t> ids, std::size_t begin,
                                    std::size_t n, std::vector<OutputRow> outputs,
                                    std::function<void(std::uint32_t, std::span<const float>)> on_logits) {
  LeaseStep made(lease, ids, begin, n);
  made.input.outputs = std::move(outputs);
  made.input.on_logits = std::move(on_logits);
  const std::lock_guard lock(mutex_);
  ZRT_CHECK_OK(check_open());
  ++steps;
  step_tokens += n;
  StepOutput output;
  ZRT_CHECK_OK(executor_->step(made.input, output));
  return output;
}

Result<std::uint32_t> EngineCore::rope_variant(std::uint64_t n_tokens) {
  const std::lock_guard lock(mutex_);
  ZRT_CHECK_OK(check_open());
  return executor_->rope_variant(n_tokens);
}

Result<std::vector<EngineCore::Span>> EngineCore::variant_spans(std::size_t n_tokens) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < n_tokens; ++i) {
    ZRT_TRY(const std::uint32_t variant, rope_variant(i + 1));
    if (spans.empty() || spans.back().variant != variant) spans.push_back({i, i, variant});
    spans.back().end = i + 1;
  }
  return spans;
}

Result<std::vector<float>> EngineCore::logits(std::span<const std::int32_t> ids, LogitsRows rows, std::uint32_t chunk) {
  if (ids.empty()) return fail(StatusCode::kInvalidArgument, "[logits] no tokens");
  if (chunk > info_.chunk_cap)
    return fail(StatusCode::kInvalidArgument, "[logits] chunk {}, at most {} (chunk_cap)", chunk, info_.chunk_cap);
  ZRT_TRY(auto spans, variant_spans(ids.size()));
  if (rows == LogitsRows::kLast) {
    spans.erase(spans.begin(), spans.end() - 1);
    spans[0].begin = ids.size() - 1;
  }
  ZRT_TRY(auto lease, this->lease(ids.size()));
  const std::size_t step_size = chunk > 0 ? chunk : info_.chunk_cap, v = config_.vocab_size;
  std::vector<float> out;
  out.reserve((ids.size() - spans[0].begin) * v);
  Status status;
  for (const Span& span : spans) {
    lease.rope_variant = span.variant;
    for (std::size_t at = 0; at < span.end && status; at += step_size) {
      const std::size_t n = std::min(step_size, span.end - at);
      std::vector<OutputRow> outputs;
      for (std::size_t i = std::max(at, span.begin); i < at + n; ++i)
        outputs.push_back({static_cast<std::uint32_t>(i - at), static_cast<std::uint32_t>(i + 1), {}, {}, 0});
      const auto result = step(
          lease, ids, at, n, std::move(outputs),
          [&](std::uint32_t, std::span<const float> values) { out.insert(out.end(), values.begin(), values.end()); });
      if (!result) status = std::unexpected(result.error());
    }
  }
  give_back(lease);
  if (!status) return std::unexpected(status.error());
  return out;
}

Result<std::vector<float>> EngineCore::hidden(std::span<const std::int32_t> ids, int layer) {
  if (ids.empty()) return fail(StatusCode::kInvalidArgument, "[hidden] no tokens");
  ZRT_TRY(const auto spans, variant_spans(ids.size()));
  ZRT_TRY(auto lease, this->lease(ids.size()));
  std::vector<float> out;
  Status status;
  for (const Span& span : spans) {
    lease.rope_variant = span.variant;
    for (std::size_t at = 0; at < span.end && status; at += info_.chunk_cap) {
      const std::size_t n = std::min<std::size_t>(info_.chunk_cap, span.end - at);
      const LeaseStep made(lease, ids, at, n);
      const std::lock_guard lock(mutex_);
      if (status = check_open(); !status) break;
      const auto part = executor_->hidden(made.input, layer);
      if (!part) {
        status = std::unexpected(part.error());
        break;
      }
      const std::size_t skipped = std::min(std::max(at, span.begin) - at, n) * config_.model_dim;
      out.insert(out.end(), part->begin() + static_cast<std::ptrdiff_t>(skipped), part->end());
    }
  }
  give_back(lease);
  if (!status) return std::unexpected(status.error());
  return out;
}

Result<std::shared_ptr<TenantState>> EngineCore::tenant(const std::string& name,
                                                        const std::optional<TenantQuota>& quota) {
  if (name.empty() || name.size() > 256)
    return fail(StatusCode::kInvalidArgument, "[tenant] a name of {} bytes, 1 to 256 allowed", name.size());
  const std::lock_guard lock(mutex_);
  ZRT_CHECK_OK(check_open());
  auto& state = tenants_[name];
  if (!state) {
    state = std::make_shared<TenantState>();
    state->name = name;
  }
  if (quota) {
    const std::lock_guard tenant_lock(state->mutex);
    state->quota = *quota;
  }
  return state;
}

std::string EngineCore::stats() {
  const std::lock_guard lock(mutex_);
  nlohmann::ordered_json json{{"tier", info_.tier},
                              {"steps", steps.load()},
                              {"step_tokens", step_tokens.load()},
                              {"slots_free", free_slots_.size()},
                              {"slots", info_.max_slots},
                              {"pages_free", pages_->n_free()},
                              {"pages", info_.n_pages},
                              {"allocated_bytes", executor_ ? executor_->allocated_bytes() : 0},
                              {"largest_prefill_difference", largest_prefill_difference.load()}};
  return json.dump();
}

}  // namespace zinc_rt
