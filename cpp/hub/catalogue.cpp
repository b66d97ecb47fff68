#include "hub/catalogue.h"

#include <algorithm>

#include "base/letter_case.h"

namespace zinc_rt::hub {
namespace {

// Contains only models whose family this version can run. Sizes and hashes of a model's files are read from its
// repository when the model is downloaded.
constexpr CatalogueEntry kCatalogue[] = {
    {"smollm2", "hf:HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF:Q4_K_M", "1.1 GB", "SmolLM2 1.7B Instruct, Q4_K_M"},
    {"smollm2:360m", "hf:HuggingFaceTB/SmolLM2-360M-Instruct-GGUF:Q8_0", "390 MB", "SmolLM2 360M Instruct, Q8_0"},
    {"smollm2:135m", "hf:bartowski/SmolLM2-135M-Instruct-GGUF:Q8_0", "145 MB", "SmolLM2 135M Instruct, Q8_0"},
    {"smollm3", "hf:ggml-org/SmolLM3-3B-GGUF:Q4_K_M", "1.9 GB", "SmolLM3 3B, Q4_K_M"},
    {"llama3.2", "hf:bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M", "2.0 GB", "Llama 3.2 3B Instruct, Q4_K_M"},
    {"llama3.2:1b", "hf:bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M", "810 MB", "Llama 3.2 1B Instruct, Q4_K_M"},
    {"llama3.1", "hf:bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M", "4.9 GB", "Llama 3.1 8B Instruct, Q4_K_M"},
    {"mistral", "hf:bartowski/Mistral-7B-Instruct-v0.3-GGUF:Q4_K_M", "4.4 GB", "Mistral 7B Instruct v0.3, Q4_K_M"},
    {"qwen3:0.6b", "hf:Qwen/Qwen3-0.6B-GGUF:Q8_0", "640 MB", "Qwen3 0.6B, Q8_0"},
    {"qwen3:1.7b", "hf:Qwen/Qwen3-1.7B-GGUF:Q8_0", "1.8 GB", "Qwen3 1.7B, Q8_0"},
    {"qwen3:4b", "hf:Qwen/Qwen3-4B-GGUF:Q4_K_M", "2.5 GB", "Qwen3 4B, Q4_K_M"},
    {"qwen3", "hf:Qwen/Qwen3-8B-GGUF:Q4_K_M", "5.0 GB", "Qwen3 8B, Q4_K_M"},
    {"qwen3:30b-a3b", "hf:Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M", "18.6 GB", "Qwen3 30B with 3B active (experts), Q4_K_M"},
    {"gemma3:1b", "hf:ggml-org/gemma-3-1b-it-GGUF:Q4_K_M", "810 MB", "Gemma 3 1B it, Q4_K_M"},
    {"gemma3", "hf:ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", "2.5 GB", "Gemma 3 4B it, text, Q4_K_M"},
    {"phi4-mini", "hf:bartowski/microsoft_Phi-4-mini-instruct-GGUF:Q4_K_M", "2.5 GB", "Phi-4-mini Instruct, Q4_K_M"},
    {"gpt-oss", "hf:ggml-org/gpt-oss-20b-GGUF:MXFP4", "12.1 GB", "gpt-oss 20B (experts), MXFP4"},
    {"ministral3", "hf:mistralai/Ministral-3-3B-Instruct-2512-GGUF:Q4_K_M", "2.1 GB", "Ministral 3 3B, text, Q4_K_M"},
    {"glm4.7-flash", "hf:unsloth/GLM-4.7-Flash-GGUF:Q4_K_M", "18.3 GB", "GLM-4.7-Flash 30B (experts), Q4_K_M"},
    {"granite3.3", "hf:ibm-granite/granite-3.3-2b-instruct-GGUF:Q4_K_M", "1.5 GB", "Granite 3.3 2B Instruct, Q4_K_M"},
    {"granite-4.0-h-micro", "hf:ibm-granite/granite-4.0-h-micro-GGUF:Q4_K_M", "1.9 GB",
     "Granite 4.0 H Micro 3B, Q4_K_M"},
    {"lfm2-1.2b", "hf:LiquidAI/LFM2-1.2B-GGUF:Q4_K_M", "730 MB", "LFM2 1.2B, Q4_K_M"},
    {"nemotron-3-nano-4b", "hf:nvidia/NVIDIA-Nemotron-3-Nano-4B-GGUF:Q4_K_M", "2.8 GB", "Nemotron 3 Nano 4B, Q4_K_M"},
};

}  // namespace

std::span<const CatalogueEntry> catalogue() {
  return kCatalogue;
}

const CatalogueEntry* catalogue_entry(std::string_view name) {
  const auto* found =
      std::ranges::find_if(kCatalogue, [&](const auto& entry) { return equals_in_any_case(entry.name, name); });
  return found == std::end(kCatalogue) ? nullptr : found;
}

std::vector<std::string> catalogue_names() {
  std::vector<std::string> names;
  for (const auto& entry : kCatalogue) names.emplace_back(entry.name);
  return names;
}

}  // namespace zinc_rt::hub
