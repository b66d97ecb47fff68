#include "hub/reference.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hub/catalogue.h"
#include "hub/store.h"

namespace zinc_rt::hub {
namespace {

std::string text_of(std::string_view name) {
  const auto reference = parse_reference(name);
  return reference ? reference->text() : "error: " + reference.error().message;
}

TEST(Reference, HasItsForms) {
  for (const char* name : {"hf:a/b-GGUF:Q4_K_M", "a/b-GGUF:Q4_K_M", "hf.co/a/b-GGUF:Q4_K_M"})
    EXPECT_EQ(text_of(name), "hf:a/b-GGUF:Q4_K_M");
  for (const char* name :
       {"https://huggingface.co/a/b", "https://huggingface.co/a/b/", "https://huggingface.co/a/b/tree/main"})
    EXPECT_EQ(text_of(name), "hf:a/b");
  EXPECT_EQ(text_of("a/b:sub/m-Q4_0.gguf"), "hf:a/b:sub/m-Q4_0.gguf");
  EXPECT_EQ(text_of("ollama:llama3.2"), "ollama:llama3.2:latest");
  EXPECT_EQ(text_of("ollama.com/library/llama3.2:1b"), "ollama:llama3.2:1b");
  EXPECT_EQ(text_of("ollama.com/me/mine"), "ollama:me/mine:latest");
  EXPECT_EQ(text_of("https://huggingface.co/a/b/resolve/main/m.gguf"),
            "https://huggingface.co/a/b/resolve/main/m.gguf");
  EXPECT_EQ(parse_reference("SmolLM2:135M")->alias, "smollm2:135m");
}

TEST(Reference, RefusesWhatIsNone) {
  for (const char* name : {"", "a b", "a/b/c", "/etc/passwd", "../x", "a/..", "hf:a", "hf:a/b:../c",
                           "ollama:", "ollama:a/b/c", "ollama:a:b:c", "a\nb", "-x"})
    EXPECT_FALSE(parse_reference(name)) << name;
}

TEST(Catalogue, EachEntryIsAReferenceOfItsOwn) {
  const auto names = catalogue_names();
  for (const auto& entry : catalogue()) {
    const auto reference = parse_reference(entry.source);
    ASSERT_TRUE(reference) << entry.name;
    EXPECT_EQ(reference->text(), entry.source);
    EXPECT_TRUE(is_good_name(entry.name)) << entry.name;
    EXPECT_EQ(std::ranges::count(names, entry.name), 1) << entry.name;
  }
}

TEST(Store, NamesOfFiles) {
  EXPECT_EQ(name_of_file("/x/Model-Q4_0.gguf"), "Model-Q4_0");
  EXPECT_EQ(name_of_file("Model-00001-of-00003.gguf"), "Model");
  EXPECT_EQ(name_of_file("Model-0001-of-00003.gguf"), "Model-0001-of-00003");
  for (const char* name : {"a", "qwen3:0.6b", "owner/name", "A-b_c.1"}) EXPECT_TRUE(is_good_name(name)) << name;
  for (const char* name : {"", "/a", "a/", "a//b", "..", "a/../b", ".a", "-a", "a b", "a\n", "ä"})
    EXPECT_FALSE(is_good_name(name)) << name;
}

}  // namespace
}  // namespace zinc_rt::hub
