#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/gpus.h"
#include "base/kv_type.h"
#include "base/options.h"
#include "base/print.h"
#include "executor/registry.h"
#include "hub/store.h"
#include "tools/command.h"

namespace zinc_rt::tools {
namespace {

// One line: loading [#####.....]  52%  51.1 / 98.1 MB. On a terminal it is rewritten.
void draw(bool rewrites, std::string_view verb, std::uint64_t done, std::uint64_t total) {
  constexpr std::size_t kWidth = 30;
  const double part = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1;
  const auto filled = static_cast<std::size_t>(part * kWidth);
  print_err("{}{} [{}{}] {:3.0f}%  {:.1f} / {:.1f} MB{}", rewrites ? "\r" : "", verb, std::string(filled, '#'),
            std::string(kWidth - filled, '.'), 100 * part, static_cast<double>(done) / 1e6,
            static_cast<double>(total) / 1e6, !rewrites || done >= total ? "\n" : "");
}

}  // namespace

Progress progress_bar(std::string verb, bool always) {
  const bool is_terminal = isatty(STDERR_FILENO) != 0;
  if (!always && !is_terminal) return {};
  const int each = is_terminal ? 1 : 20;  // percent
  return [=, verb = std::move(verb), last = -1](std::uint64_t done, std::uint64_t total) mutable {
    const int percent = total > 0 ? static_cast<int>(100 * done / total) : 100;
    if (percent / each == last / each && last >= 0) return;
    last = percent;
    draw(is_terminal, verb, done, total);
  };
}

Result<std::string> model_path(const std::string& path_or_name) {
  return hub::Store().path_of(path_or_name);
}

void add_model_options(CLI::App& app, ModelOptions& options, const std::string& names) {
  auto& e = options.engine;
  const char* group = "Memory and speed";
  const auto add = [&]<class T>(const char* name, T EngineOptions::* field, const std::string& help,
                                const char* fallback = nullptr) {
    auto* option = app.add_option(name, e.*field, help)->group(group)->capture_default_str();
    if (fallback != nullptr) option->default_str(fallback);  // of an empty option
    options.overrides.emplace_back([=, &e](EngineOptions& to) {
      if (option->count() > 0) to.*field = e.*field;
    });
    return option;
  };
  app.add_option(names, options.model,
                 "a GGUF file (of a split model, the first), an MLC folder, or a name of `zinc-rt models`")
      ->required();
  add("--tier", &EngineOptions::tier, "auto, t_cpu, ... (`zinc-rt tiers` lists them)", "auto");
  add("--backend", &EngineOptions::backend, "zinc_rt, or vulkan: a peer for GPUs that have no tier", "zinc_rt");
  add("--devices", &EngineOptions::devices, "devices of the tier that hold a replica of the model each, as 0,1", "0")
      ->delimiter(',')
      ->allow_extra_args(false);
  add("-t,--threads", &EngineOptions::threads, "threads of T-CPU and for logprobs; 0: what the process may use");
  add("-c,--max-context", &EngineOptions::max_context, "tokens a request may have; 0: the model's, at most 32768");
  add("--max-slots", &EngineOptions::max_slots, "requests that may be under way at once, on each device");
  add("--kv-pages", &EngineOptions::kv_pages, "pages of 16 tokens in each device's KV cache; 0: enough for all slots");
  add("--kv-dtype", &EngineOptions::kv_dtype, kv_type_names(", "), "i16; f32 where weights are");
  add("--pooling", &EngineOptions::pooling,
      "mean, last, cls (of encoders): the model embeds texts; rank: it scores pairs; none: it generates", "the file's");
  add("--arithmetic", &EngineOptions::arithmetic, "exact: the same bits everywhere; fast: where a tier has it",
      "exact");
  add("--tools", &EngineOptions::tools,
      "hermes: show tools to a model whose template shows none, by a text in the system message", "the template's way");
  app.add_flag("--control-tokens-in-text", options.engine.control_tokens_in_text,
               "control tokens in the text of messages and tools count, not the chat template's alone")
      ->group(group);
  app.add_flag("--progress", options.progress, "show progress even where stderr is no terminal")->group(group);
  group = "For those who measure and compare";
  add("--kernels", &EngineOptions::cpu_kernels, "kernel set of T-CPU: auto, or one that runs here; same bits", "auto");
  add("--activations", &EngineOptions::activations, "int8, or f32: quantize no activation (slow, for diffing)");
  add("--chunk-cap", &EngineOptions::chunk_cap, "most prompt tokens in one step; 0: the tier's default");
  add("--standard-gap-ms", &EngineOptions::standard_gap_ms,
      "milliseconds that prompts may make between two tokens of streams of class standard");
  add("--fusion", &EngineOptions::fusion, "1, 0, or a list of qkv, gate_up, rope_kv, moe, residual", "1");
  app.add_flag("--no-repack", options.no_repack,
               "use the weights as the file has them, where it is mapped: no second copy in memory, slower")
      ->group(group);
  app.add_flag("--no-mmap", options.no_mmap, "with --no-repack: copy the weights instead of using the mapped file")
      ->group(group);
  options.overrides.emplace_back([&options](EngineOptions& to) {
    if (options.no_repack) to.repack = false;
    if (options.no_mmap) to.mmap = false;
    if (options.engine.control_tokens_in_text) to.control_tokens_in_text = true;
  });
}

Result<Engine> open_engine(ModelOptions& options) {
  options.engine.repack = !options.no_repack;
  options.engine.mmap = !options.no_mmap;
  options.engine.on_progress = progress_bar("loading", options.progress);
  ZRT_TRY(options.model, model_path(options.model));
  ZRT_TRY(auto engine, Engine::open(options.model, options.engine));
  // Not for those who chose.
  const bool is_chosen = !options.engine.tier.empty() || !options.engine.backend.empty() ||
                         options::is_set("ZINC_RT_TIER") || options::is_set("ZINC_RT_BACKEND");
  if (const auto advice = is_chosen ? std::string() : advice_on_gpus(gpu_makers(), engine.tier()); !advice.empty())
    print_err("zinc-rt: {}\n", advice);
  return engine;
}

}  // namespace zinc_rt::tools
