// What holds for any text: decode(encode(x)) is x, and a stream gives the whole, wherever it is cut.
#include <gtest/gtest.h>

#include "tests_cpp/base/random_text.h"
#include "tests_cpp/tokenizer/small_vocab.h"
#include "tests_cpp/tokenizer/tokenizer_fixture.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/nfc.h"

namespace zinc_rt {
namespace {

// Byte-level models keep every byte for which they have a token; the others also turn U+2581 into a space.
struct Subject {
  std::string name;
  Tokenizer tokenizer;
};

void add_file(std::vector<Subject>& subjects, const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return;
  auto tokenizer = open_tokenizer(path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  subjects.push_back({path.filename().string(), *tokenizer});
}

std::vector<Subject> subjects() {
  std::vector<Subject> out;
  out.push_back({"small gpt2", *Tokenizer::from_metadata(SmallVocab::byte_level().metadata("gpt2"))});
  out.push_back({"small llama", *Tokenizer::from_metadata(SmallVocab::spm().metadata("llama"))});
  add_file(out, shared_fixtures() / "vocab" / "ggml-vocab-qwen2.gguf");
  add_file(out, shared_fixtures() / "vocab" / "ggml-vocab-phi-3.gguf");
  add_file(out, shared_fixtures() / "models" / "gemma4_moe-f16.gguf");
  add_file(out, shared_fixtures() / "models" / "llama_spm_full-f16.gguf");
  add_file(out, shared_fixtures() / "models" / "llama_k-f16.gguf");
  add_file(out, shared_fixtures() / "models" / "qwen35-f32.gguf");
  return out;
}

std::string without_space_mark(std::string text) {
  for (std::size_t at; (at = text.find("\u2581")) != std::string::npos;) text.replace(at, 3, "_");
  return text;
}

// What of a text comes back.
std::string kept(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.normalizes() ? to_nfc(text).value_or(text) : text;
}

TEST(Properties, DecodeUndoesEncode) {
  RandomText random(1);
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    for (int i = 0; i < 400; ++i) {
      const std::string text = without_space_mark(i % 2 == 0 ? random.utf8(1 + random.below(40)) : random.bytes(20));
      const auto ids = ids_of(subject.tokenizer, text);
      ASSERT_EQ(text_of(subject.tokenizer, ids), kept(subject.tokenizer, text)) << "case " << i;
      // Parsing special tokens only ever joins text that spells one out, which this text does not.
      ASSERT_EQ(ids_of(subject.tokenizer, text, false, true), ids) << "case " << i;
    }
  }
}

// What a tokenizer may take for something else: the texts of its own special and byte tokens, whole and in part, marks
// that are drawn right to left, the neighbours of the surrogates, the last code points, NUL, and very long runs of one.
std::string tricky(RandomText& random, const Tokenizer& tokenizer) {
  static constexpr char32_t kEdges[] = {0,       1,        0x7F,     0x80,   0x7FF,  0x800,  0xD7FF,
                                        0xE000,  0xFDD0,   0xFEFF,   0xFFFD, 0xFFFE, 0xFFFF, 0x10000,
                                        0x1F3FB, 0x10FFFE, 0x10FFFF, 0x300,  0x200D, 0x202E};
  static constexpr std::string_view kMarkup[] = {
      "<|im_start|>", "<|im_end|", "<s>",         "</s>",      "<unk>",
      "<0x41>",       "<0xE2>",    "<|endoftext", "[INST]",    "<bos>",
      "|>",           "<",         "<|",          "<unused1>", "\u05E9\u05DC\u05D5\u05DD",
      "\u0645\u0631", "\u0E33"};
  std::string out;
  for (std::uint32_t parts = 1 + random.below(8); parts > 0; --parts) {
    std::string unit;
    switch (random.below(4)) {
      case 0: append_utf8(unit, kEdges[random.below(std::size(kEdges))]); break;
      case 1: unit = kMarkup[random.below(std::size(kMarkup))]; break;
      case 2: {
        const auto id = static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(tokenizer.n_vocab())));
        unit = replace_invalid_utf8(text_of(tokenizer, {id}));
        break;
      }
      default: unit = random.utf8(1);
    }
    for (std::uint32_t n = random.below(12) == 0 ? 1 + random.below(3000) : 1; n > 0; --n) out += unit;
  }
  return without_space_mark(out);
}

TEST(Properties, LookAlikesAndLongRunsComeBack) {
  RandomText random(4);
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    for (int i = 0; i < 150; ++i) {
      const std::string text = tricky(random, subject.tokenizer);
      const auto ids = ids_of(subject.tokenizer, text);
      const std::string want = kept(subject.tokenizer, text);
      ASSERT_EQ(text_of(subject.tokenizer, ids), want) << "case " << i;
      Detokenizer stream(subject.tokenizer, false);
      std::string got;
      for (const std::int32_t id : ids) got += stream.push(id);
      got += stream.finish();
      ASSERT_EQ(got, want) << "case " << i;
    }
  }
}

TEST(Properties, AStreamGivesTheWhole) {
  RandomText random(2);
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    for (int i = 0; i < 200; ++i) {
      const bool any_ids = i % 4 == 0;
      std::vector<std::int32_t> ids;
      if (any_ids) {
        for (int n = 0; n < 30; ++n)
          ids.push_back(
              static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(subject.tokenizer.n_vocab()))));
      } else {
        ids = ids_of(subject.tokenizer, random.bytes(20));
      }
      const bool skip = i % 3 == 0;
      const std::string want = replace_invalid_utf8(text_of(subject.tokenizer, ids, skip));
      Detokenizer stream(subject.tokenizer, skip);
      std::string got;
      for (const std::int32_t id : ids) {
        const std::string part = stream.push(id);
        ASSERT_TRUE(is_utf8(part));
        got += part;
      }
      got += stream.finish();
      ASSERT_EQ(got, want) << "case " << i;
    }
  }
}

TEST(Properties, AStreamMayStartAnywhere) {
  RandomText random(3);
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    const auto ids = ids_of(subject.tokenizer, "hello " + random.utf8(30), true, true);
    const std::string whole = text_of(subject.tokenizer, ids);
    for (std::size_t split = 0; split <= ids.size(); ++split) {
      const std::string head = text_of(subject.tokenizer, {ids.begin(), ids.begin() + static_cast<long>(split)});
      if (!is_utf8(head)) continue;  // the tail then begins within a character
      Detokenizer stream(subject.tokenizer, false, split == 0 ? std::nullopt : std::optional(ids[split - 1]));
      std::string tail;
      for (std::size_t i = split; i < ids.size(); ++i) tail += stream.push(ids[i]);
      tail += stream.finish();
      ASSERT_EQ(head + tail, whole) << "split at " << split;
    }
  }
}

}  // namespace
}  // namespace zinc_rt
