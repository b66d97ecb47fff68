// Real and cut vocabularies against ids from an independent implementation.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests_cpp/tokenizer/tokenizer_fixture.h"

namespace zinc_rt {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> names_in(const fs::path& folder, const std::string& ending) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(ending)) names.push_back(name.substr(0, name.size() - ending.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path model_of(const std::string& name) {
  for (const char* type : {"f32", "f16", "bf16", "Q8_0"}) {
    const fs::path path = shared_fixtures() / "models" / (name + "-" + type + ".gguf");
    if (fs::exists(path)) return path;
  }
  return {};
}

TEST(TokenizerFixtures, CutVocabulariesInAllFourModes) {
  const auto names = names_in(shared_fixtures() / "tok", ".json");
  if (names.empty()) ZRT_SKIP_WITHOUT_SHARED_FIXTURES();
  std::size_t n_cases = 0;
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    auto tokenizer = open_tokenizer(model_of(name));
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    const json want = json::parse(read_text(shared_fixtures() / "tok" / (name + ".json")));
    EXPECT_EQ(tokenizer->n_vocab(), want["n_vocab"].get<std::size_t>());
    EXPECT_EQ(tokenizer->bos_id(), want["bos"].get<int>());
    EXPECT_EQ(tokenizer->eos_id(), want["eos"].get<int>());
    EXPECT_EQ(tokenizer->adds_bos(), want["llama_cpp_add_bos"].get<int>() != 0);
    for (const auto& [text, id] : want["special"].items()) EXPECT_EQ(tokenizer->find(text), id.get<int>()) << text;
    for (const json& c : want["cases"]) {
      const std::string text = c["text"];
      SCOPED_TRACE(text);
      const struct {
        const char* key;
        bool add, parse;
      } modes[] = {{"ids", false, false},
                   {"ids_add_special", true, false},
                   {"ids_parse_special", false, true},
                   {"ids_add_and_parse_special", true, true}};
      for (const auto& mode : modes) {
        EXPECT_EQ(ids_of(*tokenizer, text, mode.add, mode.parse), c[mode.key].get<std::vector<int>>()) << mode.key;
        ++n_cases;
      }
    }
  }
  RecordProperty("cases", static_cast<int>(n_cases));
  std::printf("%zu cases of %zu vocabularies\n", n_cases, names.size());
}

TEST(TokenizerFixtures, WholeVocabularies) {
  const auto names = names_in(shared_fixtures() / "vocab", ".gguf");
  if (names.empty()) ZRT_SKIP_WITHOUT_SHARED_FIXTURES();
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const fs::path path = shared_fixtures() / "vocab" / (name + ".gguf");
    auto tokenizer = open_tokenizer(path);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    const std::string input = read_text(path.string() + ".inp");
    std::istringstream output(read_text(path.string() + ".out"));
    const std::string separator = "\n__ggml_vocab_test__\n";
    std::size_t n_cases = 0;
    for (std::size_t at = 0; at < input.size();) {
      const std::size_t end = std::min(input.find(separator, at), input.size());
      const std::string text = input.substr(at, end - at);
      at = end + separator.size();
      std::string line;
      if (!std::getline(output, line)) break;
      std::istringstream numbers(line);
      std::vector<int> want;
      for (int id; numbers >> id;) want.push_back(id);
      EXPECT_EQ(ids_of(*tokenizer, text), want) << "text: " << text;
      ++n_cases;
    }
    EXPECT_GT(n_cases, 40u);
    std::printf("%s: %zu cases\n", name.c_str(), n_cases);
  }
}

TEST(TokenizerFixtures, SmolLm2Prompts) {
  const fs::path cases = shared_fixtures() / "smollm2" / "smollm2.json";
  if (!fs::exists(cases)) ZRT_SKIP_WITHOUT_SHARED_FIXTURES();
  if (!fs::exists(demo_model()))
    GTEST_SKIP() << "no demo model (" << demo_model().filename().string() << "); scripts/demo.sh fetches it";
  auto tokenizer = open_tokenizer(demo_model());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const json want = json::parse(read_text(cases));
  std::size_t n_cases = 0;
  for (const json& c : want["prompts"]) {
    const std::string text = c["text"];
    const auto ids = c["ids"].get<std::vector<int>>();
    EXPECT_EQ(ids_of(*tokenizer, text, false, true), ids) << text;
    EXPECT_EQ(text_of(*tokenizer, ids), text);
    ++n_cases;
  }
  EXPECT_EQ(n_cases, 8u);
}

}  // namespace
}  // namespace zinc_rt
