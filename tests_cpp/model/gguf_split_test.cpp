// Models split over several files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gguf_builder.h"
#include "model/weights.h"

namespace zinc_rt::gguf {
namespace {

using testing::HasSubstr;

class GgufSplit : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "zrt_split_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (std::uint16_t no = 0; no < 3; ++no) write(no, shard(no, fmt::format("t{}", no)));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(int no) const { return fmt::format("{}/m-{:05}-of-00003.gguf", folder_, no + 1); }

  static GgufBuilder shard(std::uint16_t no, std::string_view tensor, std::uint16_t count = 3, std::int32_t total = 3) {
    GgufBuilder builder;
    if (no == 0) builder.add_string("general.architecture", "tiny");
    builder.add("split.no", ValueType::kU16, no).add("split.count", ValueType::kU16, count);
    builder.add("split.tensors.count", ValueType::kI32, total);
    builder.add_tensor(tensor, 0, {static_cast<std::uint64_t>(no) + 1}, 4 * (no + 1U));
    return builder;
  }
  void write(int no, GgufBuilder builder) { write_file(path(no), builder.build()); }
  std::string error_of(const std::string& file) {
    const auto opened = GgufFile::open(file);
    EXPECT_FALSE(opened);
    return opened ? "" : opened.error().message;
  }

  std::string folder_;
};

TEST_F(GgufSplit, OpensAllShards) {
  const auto weights = Weights::open(path(0));
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(GgufFile::open(path(0))->n_shards(), 3U);
  EXPECT_EQ(weights->metadata().get_string("general.architecture").value(), "tiny");
  ASSERT_EQ(weights->all().size(), 3U);
  for (std::uint64_t no = 0; no < 3; ++no) {
    const auto tensor = weights->require(fmt::format("t{}", no), {no + 1});
    ASSERT_TRUE(tensor) << tensor.error().message;
    EXPECT_EQ((*tensor)->data.size(), 4 * (no + 1));
    EXPECT_EQ((*tensor)->data[1], std::byte{1});
  }
  EXPECT_EQ(weights->total_bytes(), 24U);
  std::uint64_t sum = 0;
  for (int no = 0; no < 3; ++no) sum += std::filesystem::file_size(path(no));
  EXPECT_EQ(weights->file_bytes(), sum);
}

TEST_F(GgufSplit, NamesAMissingShard) {
  std::filesystem::remove(path(1));
  const auto opened = GgufFile::open(path(0));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, StatusCode::kNotFound);
  EXPECT_THAT(opened.error().message, HasSubstr("shard 2 of 3 is missing"));
  EXPECT_THAT(opened.error().message, HasSubstr(path(1)));
}

TEST_F(GgufSplit, SendsALaterShardToTheFirst) {
  EXPECT_THAT(error_of(path(2)), HasSubstr("shard 3 of 3: open the first shard, " + path(0)));
}

TEST_F(GgufSplit, RefusesShardsThatDisagree) {
  write(1, shard(2, "t1"));
  EXPECT_THAT(error_of(path(0)), HasSubstr("needs shard 2 of 3, shard 3 of 3 there"));
  write(1, shard(1, "t1", 4));
  EXPECT_THAT(error_of(path(0)), HasSubstr("needs shard 2 of 3, shard 2 of 4 there"));
  write(1, shard(1, "t0"));
  EXPECT_THAT(error_of(path(0)), HasSubstr("tensor \"t0\": in shard 1 and in shard 2"));
  write(1, shard(1, "t1"));
  write(0, shard(0, "t0", 3, 4));
  EXPECT_THAT(error_of(path(0)), HasSubstr("\"split.tensors.count\": says 4, 3 there in 3 shards"));
  write(0, shard(0, "t0", 2));
  EXPECT_THAT(error_of(path(0)), HasSubstr("the name says 3 shards, key \"split.count\" says 2"));
  write(1, shard(0, "t0"));
  EXPECT_THAT(error_of(path(1)), HasSubstr("the name says shard 2, key \"split.no\" says 1"));
}

TEST_F(GgufSplit, RefusesASplitFileUnderAnotherName) {
  const std::string other = folder_ + "/model.gguf";
  std::filesystem::copy_file(path(0), other);
  EXPECT_THAT(error_of(other), HasSubstr("shard 1 of 3, but the name does not end in -00001-of-00003.gguf"));
}

TEST_F(GgufSplit, RefusesCountsOutOfRange) {
  GgufBuilder builder;
  builder.add("split.count", ValueType::kI64, std::int64_t{1} << 40);
  write(0, builder);
  EXPECT_THAT(error_of(path(0)), HasSubstr("1099511627776, at most 99999"));
}

TEST(GgufOpen, NamesAMissingFile) {
  const auto opened = GgufFile::open("/nowhere/model.gguf");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, StatusCode::kNotFound);
  EXPECT_THAT(opened.error().message, HasSubstr("/nowhere/model.gguf"));
}

}  // namespace
}  // namespace zinc_rt::gguf
