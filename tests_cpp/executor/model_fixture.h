// Small models, and ways to run them that must all give the same bits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/ring/ring_executor.h"
#include "tests_cpp/base/fixtures.h"

namespace zinc_rt {

// Every family; float and quantized weights, dense and experts, attention and recurrent layers.
inline std::vector<std::string> models() {
  return own_and({"llama_spm-f32", "mistral_swa-f32", "llama3_tied_rope-f16", "llama_k-Q4_K_M", "qwen2-f32",
                  "qwen3-Q5_K_M", "qwen3moe-Q4_K_M", "qwen35-f32", "qwen35moe-Q4_K_M", "qwen3next-f16", "gemma3-f16",
                  "gemma4_e2b-f16", "gemma4_dense-f16", "gemma4_moe-f16", "phi3-f32", "phi3_longrope-f16"});
}

// ZRT_TEST_TIER names another tier for tests that take any, as those of the engine do. Tests look at the engine between
// two steps, so no step begins before the one before it has ended, unless a test asks for that.
inline ExecutorOptions small_options() {
  ExecutorOptions options;
  const char* tier = std::getenv("ZRT_TEST_TIER");
  options.tier = tier != nullptr ? tier : "t_cpu";
  options.max_slots = 3;
  options.max_context = 128;
  options.threads = 2;
  options.run_ahead = false;
  options.state_guesses = 8;
  return options;
}

// Throws where the model does not open, with the reason: its test fails by name, and the next one begins.
inline std::unique_ptr<RingExecutor> open(const std::string& model, const ExecutorOptions& options = small_options()) {
  auto executor = RingExecutor::open(model_path(model), options);
  if (!executor) throw std::runtime_error(executor.error().message);
  return std::move(*executor);
}

inline std::vector<std::int32_t> prompt(std::size_t n, unsigned seed = 1) {
  std::mt19937 rng(seed);
  std::vector<std::int32_t> ids(n);
  for (auto& id : ids) id = static_cast<std::int32_t>(rng() % 300);
  return ids;
}

// A step's input with the memory of its views; copied and changed at will, since they are made when it is run.
struct TestStep {
  std::vector<std::int32_t> token_ids, positions, slots;
  std::vector<std::vector<std::uint32_t>> page_tables;  // by slot
  std::vector<std::uint32_t> rope_variants;
  std::vector<std::int32_t> token_types;
  std::vector<SlotRun> runs;
  std::vector<OutputRow> outputs;
  std::function<void(std::uint32_t, std::span<const float>)> on_logits;
  std::function<void(std::uint32_t, std::span<const RowLogprobs>)> on_logprobs;
  std::function<void(std::uint32_t, std::span<const float>)> on_embeddings;
  std::function<void(std::uint32_t, std::span<float>)> process;
  std::function<std::span<const std::uint32_t>(std::uint32_t)> mask;
  std::vector<float> features;
  std::function<void(std::span<const float>)> on_features;

  const StepInput& view() {
    std::size_t width = 0;
    counts_.clear();
    for (const auto& table : page_tables) {
      width = std::max(width, table.size());
      counts_.push_back(static_cast<std::uint32_t>(table.size()));
    }
    ids_.assign(width * page_tables.size(), UINT32_MAX);
    for (std::size_t slot = 0; slot < page_tables.size(); ++slot)
      std::ranges::copy(page_tables[slot], ids_.begin() + std::ptrdiff_t(slot * width));
    input_ = {token_ids,     positions,   slots,         {ids_, static_cast<std::uint32_t>(width), counts_},
              rope_variants, token_types, runs,          outputs,
              on_logits,     on_logprobs, on_embeddings, mask,
              process,       features,    on_features};
    return input_;
  }

 private:
  std::vector<std::uint32_t> ids_, counts_;
  StepInput input_;
};

// Tokens [first, first + n) of a prompt in a slot, appended to a step; the slot's pages are given by `pages`.
inline void append(TestStep& input, const std::vector<std::int32_t>& ids, std::size_t first, std::size_t n,
                   std::size_t slot, const std::vector<std::uint32_t>& pages, bool all_logits = true) {
  if (input.page_tables.size() <= slot) input.page_tables.resize(slot + 1);
  input.page_tables[slot] = pages;
  for (std::size_t i = first; i < first + n; ++i) {
    input.token_ids.push_back(ids[i]);
    input.positions.push_back(static_cast<std::int32_t>(i));
    input.slots.push_back(static_cast<std::int32_t>(slot));
    if (!all_logits && i + 1 < first + n) continue;
    OutputRow row;
    row.token_index = static_cast<std::uint32_t>(input.token_ids.size() - 1);
    row.position = static_cast<std::uint32_t>(i + 1);
    input.outputs.push_back(row);
  }
}

inline std::vector<std::uint32_t> pages_from(std::uint32_t first, std::uint32_t n = 8) {
  std::vector<std::uint32_t> pages;
  for (std::uint32_t i = 0; i < n; ++i) pages.push_back(first + i);
  return pages;
}

struct Outcome {
  std::vector<float> logits;  // row after row
  std::vector<std::int32_t> tokens;
  bool operator==(const Outcome& other) const {
    return tokens == other.tokens && logits.size() == other.logits.size() &&
           std::memcmp(logits.data(), other.logits.data(), logits.size() * sizeof(float)) == 0;
  }
};
inline void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << outcome.logits.size() << " logits, first " << (outcome.logits.empty() ? 0 : outcome.logits[0]);
}

inline void step(Executor& executor, TestStep input, Outcome& outcome) {
  input.on_logits = [&](std::uint32_t, std::span<const float> logits) {
    outcome.logits.insert(outcome.logits.end(), logits.begin(), logits.end());
  };
  StepOutput output;
  const auto status = executor.step(input.view(), output);
  ASSERT_TRUE(status) << status.error().message;
  outcome.tokens.insert(outcome.tokens.end(), output.tokens.begin(), output.tokens.end());
}

// A prompt in chunks, with the logits of every position.
inline Outcome run_prompt(Executor& executor, const std::vector<std::int32_t>& ids, std::size_t chunk,
                          std::size_t slot = 0, std::uint32_t first_page = 0) {
  Outcome outcome;
  for (std::size_t first = 0; first < ids.size(); first += chunk) {
    TestStep input;
    append(input, ids, first, std::min(chunk, ids.size() - first), slot, pages_from(first_page));
    step(executor, std::move(input), outcome);
  }
  return outcome;
}

}  // namespace zinc_rt
