// Models for tests: those of tests_data in the repository, and more in a folder that may lie beside the checkout.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace zinc_rt {

// Models, vocabularies and templates; the variable names another folder.
inline std::filesystem::path shared_fixtures() {
  const char* folder = std::getenv("ZRT_FIXTURES");
  return folder != nullptr ? folder : ZRT_SOURCE_DIR "/../shared/fixtures";
}
inline bool has_shared_fixtures() {
  return std::filesystem::exists(shared_fixtures());
}
// The same words as in tests_py/fixture_models.py, since the test command counts equal reasons.
#define ZRT_SKIP_WITHOUT_SHARED_FIXTURES() GTEST_SKIP() << "no reference fixtures in ../shared/fixtures"
#define ZRT_NEED_SHARED_FIXTURES() \
  if (!has_shared_fixtures()) ZRT_SKIP_WITHOUT_SHARED_FIXTURES()

inline std::vector<std::string> models_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (std::filesystem::is_directory(folder))
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".gguf") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}
// The variable names another folder, for programs that were built on another machine.
inline std::filesystem::path own_models() {
  const char* folder = std::getenv("ZRT_OWN_MODELS");
  return folder != nullptr ? folder : ZRT_SOURCE_DIR "/tests_data/models";
}
inline std::filesystem::path shared_models() {
  return shared_fixtures() / "models";
}

// For each model of the shared folder, by the beginning of its name, the one of tests_data that has the same parts.
inline std::string stand_in(const std::string& name) {
  static const std::pair<const char*, const char*> kNames[] = {
      {"llama_k-Q", "tiny_llama_k-Q4_K_M"},
      {"llama", "tiny_llama-f32"},
      {"mistral", "tiny_llama-f32"},
      {"qwen2", "tiny_qwen2-f16"},
      {"qwen35moe", "tiny_qwen35moe-f16"},
      {"qwen35", "tiny_qwen35-f16"},
      {"qwen3moe", "tiny_qwen3moe-Q8_0"},
      {"qwen3next", "tiny_qwen3next-f16"},
      {"qwen3", "tiny_qwen3-f16"},
      {"gemma3", "tiny_gemma3-f16"},
      {"gemma4_e2b", "tiny_gemma4-f16"},
      {"gemma4", "tiny_gemma4_moe-f16"},
      {"phi3", "tiny_phi3-f16"},
  };
  for (const auto& [begin, other] : kNames)
    if (name.starts_with(begin)) return other;
  return name;
}

// The file of a model. A test that names one of the shared folder runs on its stand-in in a clone alone; where it
// counts on that model's sizes it says ZRT_NEED_SHARED_FIXTURES.
inline std::string model_path(const std::string& name) {
  if (name.starts_with("eagle3-") || name.starts_with("assistant-"))
    return own_models().parent_path() / "blocks" / (name + ".gguf");
  const bool is_own = name.starts_with("tiny_"), is_shared = !is_own && has_shared_fixtures();
  return (is_shared ? shared_models() : own_models()) / ((is_own || is_shared ? name : stand_in(name)) + ".gguf");
}

// Those of tests_data, and the given ones of the shared folder where it is.
inline std::vector<std::string> own_and(const std::vector<std::string>& shared) {
  auto names = models_in(own_models());
  if (has_shared_fixtures()) names.insert(names.end(), shared.begin(), shared.end());
  return names;
}

}  // namespace zinc_rt
