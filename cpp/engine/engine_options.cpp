#include "zinc_rt/engine_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/kv_type.h"
#include "base/pooling.h"
#include "base/read_number.h"

namespace zinc_rt {
namespace {

using O = EngineOptions;
using enum EngineOption::Audience;

constexpr std::uint32_t kMostThreads = 1024, kMostSlots = 4096, kMostContext = 1u << 24, kMostChunk = 1u << 20;

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<EngineOption> make_rows() {
  return {
      {.name = "tier",
       .member = &O::tier,
       .help = "auto, t_cpu, ... (`zinc-rt tiers` lists them)",
       .otherwise = "auto",
       .variable = "ZINC_RT_TIER"},
      {.name = "backend",
       .member = &O::backend,
       .help = "zinc_rt, or vulkan: a peer for GPUs that have no tier, taken only when asked for",
       .otherwise = "zinc_rt",
       .variable = "ZINC_RT_BACKEND"},
      {.name = "devices",
       .member = &O::devices,
       .help = "devices of the tier that hold a replica of the model each, as 0,1"},
      {.name = "threads",
       .member = &O::threads,
       .help = "threads of T-CPU and for logprobs; 0: what the process may use",
       .variable = "ZINC_RT_CPU_WORKERS",
       .most = kMostThreads,
       .flags = "-t,--threads"},
      {.name = "max_context",
       .member = &O::max_context,
       .help = "tokens a request may have; 0: the model's, at most 32768",
       .most = kMostContext,
       .flags = "-c,--max-context"},
      {.name = "max_slots",
       .member = &O::max_slots,
       .help = "requests that may be under way at once, on each device",
       .least = 1,
       .most = kMostSlots},
      {.name = "kv_pages",
       .member = &O::kv_pages,
       .help = "pages of 16 tokens in each device's KV cache; 0: enough for all slots, at most a quarter of memory",
       .most = INT32_MAX},
      {.name = "kv_dtype",
       .member = &O::kv_dtype,
       .help = fmt::format("type of the KV cache: {}", fmt::join(kv_type_names(), ", ")),
       .otherwise = "i16; f32 where weights are",
       .choices = kv_type_names()},
      {.name = "pooling",
       .member = &O::pooling,
       .help = "mean, last, cls (of encoders): the model embeds texts; rank: it scores pairs; none: it generates",
       .otherwise = "the file's",
       .choices = pooling_names()},
      {.name = "arithmetic",
       .member = &O::arithmetic,
       .help = "exact: the same bits everywhere; fast: where a tier has it",
       .otherwise = "exact",
       .variable = "ZINC_RT_ARITH",
       .choices = arithmetic_names()},
      {.name = "tools",
       .member = &O::tools,
       .help = "hermes: show tools to a model whose template shows none, by a text in the system message",
       .otherwise = "the template's way",
       .choices = {"hermes"}},
      {.name = "control_tokens_in_text",
       .member = &O::control_tokens_in_text,
       .help = "control tokens in the text of messages and tools count, not the chat template's alone"},
      {.name = "prefix_cache",
       .member = &O::prefix_cache,
       .help = "keep the KV of what was computed, for prompts that begin the same way"},
      {.name = "speculate",
       .member = &O::speculate,
       .help = "tokens a step may guess for a request, which changes no token: auto, off, or 1 to 32",
       .otherwise = "auto",
       .variable = "ZINC_RT_SPECULATE"},
      {.name = "draft_model",
       .member = &O::draft_model,
       .help = "a smaller model of the same vocabulary, whose guesses a step verifies: a GGUF file, or as the model; "
               "an EAGLE-3 file or an assistant of Gemma 4; mtp: the model's own block for multi-token prediction",
       .otherwise = "none",
       .variable = "ZINC_RT_DRAFT_MODEL"},
      {.name = "queue_cap",
       .member = &O::queue_cap,
       .help = "requests of a model that may wait; more are refused with a time to try again",
       .least = 1},
      {.name = "standard_gap_ms",
       .member = &O::standard_gap_ms,
       .help = "milliseconds that prompts may make between two tokens of streams of class standard"},
      {.name = "repack",
       .member = &O::repack,
       .help = "copy weights into the form that the tier's kernels read fastest; off: no second copy in memory, slower",
       .audience = kMeasuring},
      {.name = "mmap",
       .member = &O::mmap,
       .help = "with repack off: use the weights where the file is mapped; off: copy them",
       .audience = kMeasuring},
      {.name = "cpu_kernels",
       .member = &O::cpu_kernels,
       .help = "kernel set of T-CPU: auto, or one that runs here; same bits",
       .otherwise = "auto",
       .variable = "ZINC_RT_CPU_KERNELS",
       .audience = kMeasuring,
       .flags = "--kernels"},
      {.name = "activations",
       .member = &O::activations,
       .help = "int8, or f32: quantize no activation (slow, for diffing)",
       .choices = activations_names(),
       .audience = kMeasuring},
      {.name = "chunk_cap",
       .member = &O::chunk_cap,
       .help = "most prompt tokens in one step; 0: the tier's default",
       .variable = "ZINC_RT_CHUNK_CAP",
       .most = kMostChunk,
       .audience = kMeasuring},
      {.name = "run_ahead",
       .member = &O::run_ahead,
       .help = "begin a step of decoding while the one before it runs; same bits",
       .audience = kMeasuring},
      {.name = "fusion",
       .member = &O::fusion,
       .help = "1, 0, or a list of qkv, gate_up, rope_kv, moe, residual",
       .otherwise = "1",
       .variable = "ZINC_RT_FUSION",
       .audience = kMeasuring},
      {.name = "max_models",
       .member = &O::max_models,
       .help = "models that may be loaded; more: the one that was idle longest goes; 0: no limit",
       .audience = kEngine},
  };
}

// read() parses a text into an option's value; it has an overload per type of option. It returns false if the text has
// another form.
bool read(std::string_view text, std::string& out) {
  out = text;
  return !text.empty();
}
bool read(std::string_view text, std::uint32_t& out) {
  return read_number(text, out);
}
bool read(std::string_view text, bool& out) {
  out = text == "1";
  return text == "0" || text == "1";
}
bool read(std::string_view text, std::vector<std::uint32_t>& out) {
  out.clear();
  return std::ranges::all_of(split(text), [&](const auto& part) { return read_number(part, out.emplace_back()); });
}

std::string wanted_for(const EngineOption& row) {
  if (std::holds_alternative<bool O::*>(row.member)) return "1 or 0";
  if (std::holds_alternative<std::uint32_t O::*>(row.member)) return fmt::format("{} to {}", row.least, row.most);
  if (std::holds_alternative<std::string O::*>(row.member))
    return row.choices.empty() ? "a text" : fmt::format("{}", fmt::join(row.choices, ", "));
  return "numbers joined by commas";
}

}  // namespace

std::span<const EngineOption> engine_options() {
  static const std::vector<EngineOption> rows = make_rows();
  return rows;
}

Status check(const EngineOptions& options, const EngineOption& row) {
  if (const auto* number = std::get_if<std::uint32_t O::*>(&row.member)) {
    const auto value = options.**number;
    if (value < row.least || value > row.most)
      return fail({StatusCode::kInvalidArgument, row.name}, "[engine] {} is {}, {} to {} allowed", row.name, value,
                  row.least, row.most);
  } else if (const auto* text = std::get_if<std::string O::*>(&row.member)) {
    const auto& value = options.**text;
    if (!row.choices.empty() && !value.empty() && std::ranges::find(row.choices, value) == row.choices.end())
      return fail({StatusCode::kInvalidArgument, row.name}, "[engine] {} \"{}\" is not one of {}", row.name, value,
                  fmt::join(row.choices, ", "));
  }
  return {};
}

Status set_option(EngineOptions& options, const EngineOption& row, std::string_view text) {
  if (!std::visit([&](auto member) { return read(text, options.*member); }, row.member))
    return fail({StatusCode::kInvalidArgument, row.name}, "[engine] {}={}: {} wanted", row.name, text, wanted_for(row));
  return check(options, row);
}

Status check(const EngineOptions& options) {
  for (const auto& row : engine_options()) ZRT_CHECK_OK(check(options, row));
  return {};
}

}  // namespace zinc_rt
