// What is written is read back: every kind of value, tensors at the alignment; a failed file leaves nothing.
#include "model/gguf/writer.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "model/gguf/reader.h"
#include "model/gguf/values.h"
#include "tests_cpp/model/gguf_builder.h"

namespace zinc_rt::gguf {
namespace {

const std::string kPath = ::testing::TempDir() + "writer_test.gguf";

bool same(const Value& a, const Value& b) {
  return a.type == b.type && a.is_array == b.is_array && a.data == b.data;
}

TEST(GgufWriter, ValuesAndTensorsComeBack) {
  Metadata metadata;
  const auto add = [&](std::string key, Value value) { ASSERT_TRUE(metadata.add(std::move(key), std::move(value))); };
  add("general.architecture", string("tiny"));
  add("u8", {ValueType::kU8, false, std::int64_t{255}});
  add("i8", {ValueType::kI8, false, std::int64_t{-128}});
  add("u16", {ValueType::kU16, false, std::int64_t{65535}});
  add("i16", {ValueType::kI16, false, std::int64_t{-32768}});
  add("u32", u32(4294967295U));
  add("i32", {ValueType::kI32, false, std::int64_t{-2147483648}});
  add("u64", {ValueType::kU64, false, std::uint64_t{18446744073709551615U}});
  add("i64", {ValueType::kI64, false, std::int64_t{-5}});
  add("f32", f32(0.1));
  add("f64", {ValueType::kF64, false, 0.1});
  add("bool", boolean(true));
  add("strings", strings({"", "a\nb", "\xff"}));
  add("i32s", i32s({1, -2, 3}));
  add("f32s", f32s({0.5, -1.25}));
  add("bools", {ValueType::kBool, true, std::vector<std::uint8_t>{0, 1, 1}});
  add("u64s", {ValueType::kU64, true, std::vector<std::uint64_t>{1, 2}});
  add("none", strings({}));
  for (const std::uint32_t alignment : {0U, 64U}) {
    if (alignment != 0) add("general.alignment", u32(alignment));
    std::vector<std::byte> first(34 * 3, std::byte{7}), second(20, std::byte{9});
    const std::vector<Tensor> tensors = {{"a.weight", DType::kQ8_0, 2, {32, 3, 1, 1}, first},
                                         {"b", DType::kF32, 1, {5, 1, 1, 1}, second}};
    std::uint64_t done = 0;
    const auto written =
        write_file(kPath, metadata, tensors, {.on_progress = [&](std::uint64_t n, std::uint64_t) -> Status {
                     done = n;
                     return {};
                   }});
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(*written, std::filesystem::file_size(kPath));
    EXPECT_EQ(done, first.size() + second.size());
    const auto file = GgufFile::open(kPath);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->version(), 3U);
    ASSERT_EQ(file->metadata().entries().size(), metadata.entries().size());
    for (std::size_t i = 0; i < metadata.entries().size(); ++i) {
      EXPECT_EQ(file->metadata().entries()[i].first, metadata.entries()[i].first);
      EXPECT_TRUE(same(file->metadata().entries()[i].second, metadata.entries()[i].second))
          << metadata.entries()[i].first;
    }
    ASSERT_EQ(file->tensors().size(), 2U);
    const TensorInfo& a = file->tensors()[0];
    EXPECT_EQ(a.name, "a.weight");
    EXPECT_EQ(a.dtype, DType::kQ8_0);
    EXPECT_EQ(a.dims[1], 3U);
    EXPECT_EQ(a.offset % (alignment == 0 ? 32 : alignment), 0U);
    EXPECT_TRUE(std::ranges::equal(file->data(a), first));
    EXPECT_TRUE(std::ranges::equal(file->data(file->tensors()[1]), second));
    EXPECT_FALSE(std::filesystem::exists(kPath + ".part"));
  }
  std::filesystem::remove(kPath);
}

// Every type that a file may hold can be written.
TEST(GgufWriter, TypesHaveNumbers) {
  for (std::uint32_t number = 0; number < 64; ++number) {
    const FileTensorType* type = find_tensor_type(number);
    if (type == nullptr || !type->dtype) continue;
    EXPECT_EQ(find_tensor_type(*type->dtype)->number, number);
  }
  EXPECT_EQ(find_tensor_type(DType::kQ8A32), nullptr);
}

TEST(GgufWriter, AFailureLeavesNothing) {
  Metadata metadata;
  const std::vector<Tensor> tensors = {{"x", DType::kQ8A32, 1, {32, 1, 1, 1}, {}}};
  EXPECT_EQ(write_file(kPath, metadata, tensors).error().code, StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(kPath));
  EXPECT_FALSE(std::filesystem::exists(kPath + ".part"));
  EXPECT_EQ(write_file("/nowhere/x.gguf", metadata, {}).error().code, StatusCode::kNotFound);
  // Nor does one that its caller stops.
  const std::vector<std::byte> bytes(32 * 4);
  const std::vector<Tensor> good = {{"x", DType::kF32, 1, {32, 1, 1, 1}, bytes}};
  const auto stop = [](std::uint64_t, std::uint64_t) -> Status {
    return std::unexpected(Error{StatusCode::kUnavailable, "stopped"});
  };
  EXPECT_EQ(write_file(kPath, metadata, good, {.on_progress = stop}).error().code, StatusCode::kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(kPath));
  EXPECT_FALSE(std::filesystem::exists(kPath + ".part"));
}

// A file that was there stays until the new one is whole, and is replaced then.
TEST(GgufWriter, ReplacesAFile) {
  write_file(kPath, std::vector<std::byte>(100));
  ASSERT_TRUE(write_file(kPath, Metadata{}, std::span<const Tensor>{}));
  EXPECT_TRUE(GgufFile::open(kPath));
  std::filesystem::remove(kPath);
}

}  // namespace
}  // namespace zinc_rt::gguf
