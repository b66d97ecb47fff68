// Damaged files: every cut and every damaged byte of a header gives a value or an error with a message, and never an
// allocation beyond what the file's own size explains.
#include <gtest/gtest.h>

#include "gguf_builder.h"
#include "model/config.h"
#include "model/gguf/reader.h"
#include "tests_cpp/base/counting_allocator.h"

namespace zinc_rt::gguf {
namespace {

class GgufMutation : public testing::Test {
 protected:
  GgufMutation() {
    GgufBuilder builder = tiny_model();
    builder.add_u32("general.alignment", 32).add("flag", ValueType::kBool, std::uint8_t{1});
    builder.add_array<float>("scores", ValueType::kF32, {1, 2, 3}).add("wide", ValueType::kU64, std::uint64_t{9});
    builder.add_array<std::uint8_t>("flags", ValueType::kBool, {0, 1}).add("f64", ValueType::kF64, 0.5);
    builder.add_tensor("token_embd.weight", 0, {64, 5}, 1280).add_tensor("q", 12, {256, 3}, 432);
    builder.add_tensor("b", 1, {4, 3, 2, 1}, 48);
    file_ = builder.build();
    header_bytes_ = builder.header_bytes;
  }

  // True when the file is accepted.
  bool check(std::span<const std::byte> bytes) {
    const AllocationCount allocations;
    const auto parsed = parse(bytes, "damaged.gguf");
    EXPECT_LE(allocations.largest(), 16 * bytes.size() + 4096);
    if (!parsed) {
      EXPECT_FALSE(parsed.error().message.empty());
      return false;
    }
    for (const TensorInfo& tensor : parsed->tensors) {
      EXPECT_LE(tensor.offset, bytes.size());
      EXPECT_LE(tensor.n_bytes, bytes.size() - tensor.offset);
    }
    const auto config = read_config(parsed->metadata, parsed->tensors);
    EXPECT_TRUE(config || !config.error().message.empty());
    return true;
  }

  std::vector<std::byte> file_;
  std::size_t header_bytes_ = 0;
};

TEST_F(GgufMutation, EveryCutIsAnError) {
  ASSERT_TRUE(check(file_));
  for (std::size_t n = 0; n < file_.size(); ++n) EXPECT_FALSE(check(std::span(file_).first(n))) << n;
}

TEST_F(GgufMutation, DamagedBytesGiveAValueOrAnError) {
  for (std::size_t at = 0; at < header_bytes_; ++at)
    for (int value = 0; value < 256; ++value) {
      auto bytes = file_;
      bytes[at] = static_cast<std::byte>(value);
      check(bytes);
    }
}

TEST_F(GgufMutation, DamagedWordsGiveAValueOrAnError) {
  constexpr std::uint64_t kWords[] = {0,          1,          0x7fffffff, 0x80000000, 0xffffffff,
                                      1ULL << 40, ~0ULL >> 1, ~0ULL - 7,  ~0ULL};
  for (std::size_t at = 0; at + 8 <= header_bytes_; ++at)
    for (const std::uint64_t word : kWords)
      for (const std::size_t width : {std::size_t{4}, std::size_t{8}}) {
        auto bytes = file_;
        std::memcpy(bytes.data() + at, &word, width);
        check(bytes);
      }
}

TEST_F(GgufMutation, MissingAndDoubledBytesGiveAValueOrAnError) {
  for (std::size_t at = 0; at < header_bytes_; ++at) {
    auto bytes = file_;
    bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
    check(bytes);
    bytes = file_;
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes[at]);
    check(bytes);
  }
}

}  // namespace
}  // namespace zinc_rt::gguf
