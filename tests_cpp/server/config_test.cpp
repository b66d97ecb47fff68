// The configuration file: a key of another table, and what changes when the file is read again.
#include "server/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace zinc_rt::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<Config> load(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("zrt_config_{}.toml", ::getpid());
  std::ofstream(path) << text;
  auto config = load_config(path);
  std::filesystem::remove(path);
  return config;
}

std::string refusal_of(const std::string& text) {
  const auto config = load(text);
  return config ? "" : config.error().message;
}

// A table with one key more; models and tenants have what they cannot be without.
std::string table_with(const std::string& heading, const std::string& line) {
  const char* needed = heading == "[[models]]" ? "path = \"m\"\n" : heading == "[[tenants]]" ? "name = \"a\"\n" : "";
  return fmt::format("{}\n{}{}\n", heading, needed, line);
}

TEST(Config, TheExampleHasEveryKey) {
  const std::string example = "\n" + example_config();
  for (const auto& [heading, keys] : config_keys()) {
    EXPECT_NE(example.find("\n" + heading), std::string::npos) << heading;
    for (const auto& key : keys) {
      if (heading.empty() && key != "admin_keys") continue;  // the tables themselves
      EXPECT_TRUE(example.find("\n" + key + " = ") != std::string::npos ||
                  example.find("\n# " + key + " = ") != std::string::npos)
          << heading << " " << key;
    }
  }
}

TEST(Config, AKeyInAnotherTableIsToldWhereItBelongs) {
  int n = 0;
  for (const auto& [wrong, own] : config_keys()) {
    if (wrong == "[objectives]") continue;  // its keys are the user's
    for (const auto& [right, keys] : config_keys())
      for (const auto& key : keys) {
        if (own.contains(key) || (right.empty() && key != "admin_keys")) continue;
        const auto line = key + " = 1";
        const auto said = refusal_of(wrong.empty() ? line : table_with(wrong, line));
        EXPECT_THAT(said, HasSubstr(key + ": no such key is known here; it belongs into "));
        EXPECT_THAT(said, HasSubstr(right.empty() ? "the top of the file" : right));
        ++n;
      }
  }
  EXPECT_GT(n, 100);
  EXPECT_THAT(refusal_of("model_dirs = []"),
              HasSubstr("line 1: model_dirs: no such key is known here; it belongs into [server]"));
}

TEST(Config, AKeyOfNoTableIsRefusedWithANearOne) {
  EXPECT_THAT(refusal_of("[server]\nprot = 1"),
              HasSubstr("line 2: server.prot: no such key is known; did you mean port?"));
  EXPECT_THAT(refusal_of("[server]\nzzz = 1"), HasSubstr("line 2: server.zzz: no such key is known"));
  EXPECT_THAT(refusal_of(table_with("[[tenants]]", "wieght = 1")), HasSubstr("did you mean weight?"));
}

// What a key may hold other than what it has unless it is given.
const std::map<std::string, std::string> kModelValues = {
    {"path", ""},
    {"id", "id = \"b\""},
    {"served_names", "served_names = [\"b\"]"},
    {"devices", "devices = [1]"},
    {"max_context", "max_context = 16"},
    {"max_slots", "max_slots = 3"},
    {"kv_pages", "kv_pages = 9"},
    {"kv_dtype", "kv_dtype = \"f32\""},
    {"pooling", "pooling = \"mean\""},
    {"threads", "threads = 2"},
    {"tier", "tier = \"null\""},
    {"backend", "backend = \"vulkan\""},
    {"arithmetic", "arithmetic = \"fast\""},
    {"tools", "tools = \"hermes\""},
    {"control_tokens_in_text", "control_tokens_in_text = true"},
    {"chunk_cap", "chunk_cap = 7"},
    {"run_ahead", "run_ahead = false"},
    {"standard_gap_ms", "standard_gap_ms = 7"},
    {"prefix_cache", "prefix_cache = false"},
    {"speculate", "speculate = \"off\""},
    {"draft_model", "draft_model = \"small.gguf\""},
    {"queue_cap", "queue_cap = 7"},
    {"repack", "repack = false"},
    {"mmap", "mmap = false"},
    {"cpu_kernels", "cpu_kernels = \"avx2\""},
    {"activations", "activations = \"f32\""},
    {"fusion", "fusion = \"0\""},
};

TEST(Config, EveryKeyOfAModelMakesItAnotherModel) {
  const auto plain = load(table_with("[[models]]", ""));
  ASSERT_TRUE(plain);
  for (const auto& key : config_keys().at("[[models]]")) {
    const auto value = kModelValues.find(key);
    ASSERT_NE(value, kModelValues.end()) << key;
    const auto changed = load(key == "path" ? "[[models]]\npath = \"other\"" : table_with("[[models]]", value->second));
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_NE(plain->models, changed->models) << key;
  }
}

TEST(Config, WhoListensToTheLoadingMakesNoOtherModel) {
  EngineOptions one, other;
  other.on_progress = [](std::uint64_t, std::uint64_t) {};
  EXPECT_TRUE(other.on_progress.call && !one.on_progress.call);
  EXPECT_EQ(one, other);
}

TEST(Config, WhatOnlyARestartTakesOverIsNamed) {
  const std::string before = "[server]\nport = 1\ncors_origins = [\"a\"]\ntolerant = false\n";
  const auto running = load(before);
  ASSERT_TRUE(running);
  EXPECT_THAT(kept_until_restart(*running, *load(before + "# a comment\n")), IsEmpty());
  EXPECT_THAT(kept_until_restart(*running, *load("[server]\nport = 1\ncors_origins = [\"a\"]\ntolerant = true\n")),
              IsEmpty());
  EXPECT_THAT(kept_until_restart(*running, *load("[server]\nport = 2\ncors_origins = [\"b\"]\nhost = \"::1\"\n")),
              ElementsAre("cors_origins", "host", "port"));
  EXPECT_THAT(kept_until_restart(*running, *load("")), ElementsAre("cors_origins", "port"));
}

}  // namespace
}  // namespace zinc_rt::server
