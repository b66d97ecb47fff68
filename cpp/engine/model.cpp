#include "engine/model.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "base/thread_pool.h"
#include "engine/card.h"

namespace zinc_rt {
namespace {

// Stands behind the last message's content in the rendered text, and ends the prompt.
constexpr std::string_view kEndMark = "<zinc-rt: the prompt ends here>";

// 0: what the process may use.
Result<int> chosen_threads(const EngineOptions& options) {
  ZRT_TRY(const auto threads, options::get_int("ZINC_RT_CPU_WORKERS", 0, 1024));
  if (options.threads < 0 || options.threads > 1024)
    return fail(StatusCode::kInvalidArgument, "[engine] threads is {}, 0 to 1024 allowed", options.threads);
  return options.threads > 0 ? options.threads : static_cast<int>(threads);
}

Result<ExecutorOptions> executor_options(const EngineOptions& options) {
  ExecutorOptions out;
  out.tier = options.tier.empty() || options.tier == "auto" ? options::get("ZINC_RT_TIER") : options.tier;
  out.max_slots = options.max_slots;
  out.kv_pages = options.kv_pages;
  out.max_context = options.max_context;
  out.kv_dtype = options.kv_dtype;
  out.activations = options.activations;
  out.arithmetic = options.arithmetic.empty() ? options::get("ZINC_RT_ARITH") : options.arithmetic;
  if (out.arithmetic != "exact" && out.arithmetic != "fast")
    return fail(StatusCode::kInvalidArgument, "[engine] arithmetic \"{}\" is not one of exact, fast", out.arithmetic);
  out.mmap = options.mmap;
  out.repack = options.repack;
  out.state_checkpoints = 2 * options.max_slots;
  out.on_progress = options.on_progress;
  out.fusion = options.fusion.empty() ? options::get("ZINC_RT_FUSION") : options.fusion;
  ZRT_TRY(out.threads, chosen_threads(options));
  ZRT_TRY(const auto chunk, options::get_int("ZINC_RT_CHUNK_CAP", 0, 1 << 20));
  out.chunk_cap = options.chunk_cap > 0 ? options.chunk_cap : static_cast<std::uint32_t>(chunk);
  out.cpu_kernels = options.cpu_kernels.empty() ? options::get("ZINC_RT_CPU_KERNELS") : options.cpu_kernels;
  return out;
}

Result<PrefillMode> parse_prefill_mode() {
  const auto text = options::get("ZINC_RT_BATCHED_PREFILL");
  if (text == "1") return PrefillMode::kBatched;
  if (text == "0") return PrefillMode::kTokenByToken;
  if (text == "validate") return PrefillMode::kValidate;
  return fail(StatusCode::kInvalidArgument, "[options] ZINC_RT_BATCHED_PREFILL={} is not one of 1, 0, validate", text);
}

bool begins_with_system(const nlohmann::ordered_json& messages) {
  if (messages.empty() || !messages[0].is_object()) return false;
  const auto role = messages[0].find("role");
  return role != messages[0].end() && *role == "system";
}

}  // namespace

Result<std::shared_ptr<Model>> Model::open(const std::string& path, const EngineOptions& options) {
  ZRT_TRY(const auto wanted, executor_options(options));
  ZRT_TRY(auto executor, open_executor(path, wanted));
  const ExecutorInfo& info = executor->info();
  if (wanted.arithmetic != info.arithmetic)
    log().info("arithmetic {} was asked for; tier {} has only {} kernels here, which fast allows", wanted.arithmetic,
               info.tier, info.arithmetic);
  return make(std::move(executor), options);
}

Result<std::shared_ptr<Model>> Model::make(std::unique_ptr<Executor> executor, const EngineOptions& options) {
  auto model = std::make_shared<Model>();
  model->options_ = options;
  ZRT_TRY(model->prefill_mode_, parse_prefill_mode());
  ZRT_TRY(const auto threads, chosen_threads(options));
  model->n_threads_ = threads > 0 ? threads : usable_threads();
  if (options.queue_cap == 0) return fail(StatusCode::kInvalidArgument, "[engine] queue_cap is 0, at least 1 wanted");
  model->info_ = executor->info();
  model->config_ = executor->config();
  const auto& metadata = executor->weights().metadata();
  ZRT_TRY(model->tokenizer_, Tokenizer::from_metadata(metadata));
  const auto n_vocab = static_cast<std::int32_t>(model->tokenizer_->n_vocab());
  if (model->tokenizer_->n_vocab() != model->config_.vocab_size)
    log().warn("the vocabulary has {} tokens, the model {} rows", n_vocab, model->config_.vocab_size);
  for (std::int32_t id = 0; id < n_vocab; ++id)
    if (model->tokenizer_->is_end_of_generation(id)) model->end_tokens_.push_back(id);
  if (const auto source = metadata.get_string("tokenizer.chat_template")) {
    model->template_text_ = *source;
    auto parsed = ChatTemplate::parse(model->template_text_);
    if (parsed)
      model->template_ = std::move(*parsed);
    else
      model->template_error_ = parsed.error();
  } else {
    model->template_error_ = {
        StatusCode::kInvalidArgument,
        "[chat_template] the model file has none (key tokenizer.chat_template); give a prompt instead", 0};
  }
  model->card_ = make_model_card(*executor, *model->tokenizer_);
  model->memory_ = make_model_memory(executor->plan(), model->info_);
  model->allocated_bytes_ = executor->allocated_bytes();
  model->executor_ = std::move(executor);
  return model;
}

void Model::join(std::string name, std::uint32_t id, sched::TenantBook& tenants, mem::SipKey key, Timeline& timeline) {
  name_ = std::move(name);
  sched::Options o;
  o.model_id = id;
  o.n_slots = info_.max_slots;
  o.n_pages = info_.n_pages;
  o.max_context = info_.max_context;
  o.chunk_cap = info_.chunk_cap;
  o.prefill_cap = prefill_mode_ == PrefillMode::kTokenByToken ? 1 : info_.chunk_cap;
  o.standard_gap = sched::Micros{1000} * options_.standard_gap_ms;
  o.queue_cap = options_.queue_cap;
  o.prefix_cache = options_.prefix_cache;
  o.is_recurrent = info_.state_bytes_per_slot > 0;
  o.n_checkpoints = o.is_recurrent ? info_.n_state_checkpoints : 0;
  o.rope_limits = info_.rope_limits;
  o.hash_key = key;
  runner_ = std::make_unique<ModelRunner>(*executor_, o, tenants, timeline);
}

void Model::unload() {
  runner_.reset();
  executor_.reset();
}

Result<std::string> Model::render(const RenderInput& input) const {
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
  if (!input.extra.empty()) {
    ZRT_TRY(context, add("extra", input.extra, Json::value_t::object));
  }
  ZRT_TRY(context["messages"], add("messages", input.messages, Json::value_t::array));
  auto& list = context["messages"];
  if (!input.system.empty() && !begins_with_system(list))
    list.insert(list.begin(), Json{{"role", "system"}, {"content", input.system}});
  if (input.continue_final_message) {
    if (list.empty() || !list.back().is_object() || !list.back().contains("content") ||
        !list.back()["content"].is_string())
      return fail(StatusCode::kInvalidArgument,
                  "[request] continue_final_message wants a last message whose content is a text");
    list.back()["content"].get_ref<std::string&>() += kEndMark;
  }
  if (!input.tools.empty()) {
    ZRT_TRY(context["tools"], add("tools", input.tools, Json::value_t::array));
  }
  // As transformers calls its templates: these are there, as none, when they are not given.
  for (const char* name : {"tools", "documents"})
    if (!context.contains(name)) context[name] = nullptr;
  context["add_generation_prompt"] = input.add_generation_prompt;
  const auto text = [&](std::optional<std::int32_t> id) {
    return id ? std::string(tokenizer_->token_text(*id)) : std::string();
  };
  if (!context.contains("bos_token")) context["bos_token"] = text(tokenizer_->bos_id());
  if (!context.contains("eos_token")) context["eos_token"] = text(tokenizer_->eos_id());
  RenderLimits limits;
  limits.cancel = input.cancel;
  ZRT_TRY(auto rendered, template_->render(std::move(context), limits));
  if (!input.continue_final_message) return rendered;
  const auto end = rendered.rfind(kEndMark);
  if (end == std::string::npos)
    return fail(StatusCode::kInvalidArgument,
                "[request] continue_final_message: the chat template does not write the last message's content as it "
                "is");
  rendered.resize(end);
  return rendered;
}

}  // namespace zinc_rt
