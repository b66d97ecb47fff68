// The GGUF reader: one test a rule. An error names the file, the key or tensor, and both numbers.
#include "model/gguf/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "gguf_builder.h"

namespace zinc_rt::gguf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ4_K = 12;

void expect_error(GgufBuilder builder, StatusCode code, const std::vector<std::string>& parts) {
  const auto parsed = parse(builder.build(), "some/file.gguf");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, code) << parsed.error().message;
  EXPECT_THAT(parsed.error().message, HasSubstr("[gguf] some/file.gguf: "));
  for (const std::string& part : parts) EXPECT_THAT(parsed.error().message, HasSubstr(part));
}
void expect_corrupt(GgufBuilder builder, const std::vector<std::string>& parts) {
  expect_error(std::move(builder), StatusCode::kCorrupt, parts);
}

TEST(GgufReader, ReadsEveryValueType) {
  GgufBuilder builder;
  builder.add("u8", ValueType::kU8, std::uint8_t{200}).add("i8", ValueType::kI8, std::int8_t{-100});
  builder.add("u16", ValueType::kU16, std::uint16_t{60000}).add("i16", ValueType::kI16, std::int16_t{-30000});
  builder.add("u32", ValueType::kU32, 4000000000U).add("i32", ValueType::kI32, -2000000000);
  builder.add("u64", ValueType::kU64, ~std::uint64_t{0}).add("i64", ValueType::kI64, std::int64_t{-5000000000});
  builder.add_f32("f32", 0.5f).add("f64", ValueType::kF64, 0.1).add("yes", ValueType::kBool, std::uint8_t{1});
  builder.add_string("text", "two words").add_string("empty", "");
  builder.add_array<std::uint8_t>("u8s", ValueType::kU8, {1, 255}).add_array<std::int8_t>("i8s", ValueType::kI8, {-1});
  builder.add_array<std::uint16_t>("u16s", ValueType::kU16, {65535})
      .add_array<std::int16_t>("i16s", ValueType::kI16, {-7});
  builder.add_array<std::uint32_t>("u32s", ValueType::kU32, {4000000000U});
  builder.add_array<std::int32_t>("i32s", ValueType::kI32, {}).add_array<std::int64_t>("i64s", ValueType::kI64, {-9});
  builder.add_array<std::uint64_t>("u64s", ValueType::kU64, {1, ~std::uint64_t{0}});
  builder.add_array<float>("f32s", ValueType::kF32, {1.5f}).add_array<double>("f64s", ValueType::kF64, {0.1});
  builder.add_array<std::uint8_t>("bools", ValueType::kBool, {1, 0});
  builder.add_array<std::string>("texts", ValueType::kString, {"x", "", "yz"});
  for (const std::uint32_t version : {2U, 3U}) {
    builder.version = version;
    const auto parsed = parse(builder.build(), "f");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->version, version);
    const Metadata& m = parsed->metadata;
    EXPECT_EQ(m.get_int("u8").value(), 200);
    EXPECT_EQ(m.get_int("i8").value(), -100);
    EXPECT_EQ(m.get_int("u16").value(), 60000);
    EXPECT_EQ(m.get_int("i16").value(), -30000);
    EXPECT_EQ(m.get_int("u32").value(), 4000000000);
    EXPECT_EQ(m.get_int("i32").value(), -2000000000);
    EXPECT_EQ(m.get_int("i64").value(), -5000000000);
    EXPECT_EQ(std::get<std::uint64_t>(m.find("u64")->data), ~std::uint64_t{0});
    EXPECT_EQ(m.get_float("f32").value(), 0.5);
    EXPECT_EQ(m.get_float("f64").value(), 0.1);
    EXPECT_TRUE(m.get_bool("yes").value());
    EXPECT_EQ(m.get_string("text").value(), "two words");
    EXPECT_EQ(m.get_string("empty").value(), "");
    EXPECT_THAT(m.get_ints("u8s").value(), ElementsAre(1, 255));
    EXPECT_THAT(m.get_ints("i8s").value(), ElementsAre(-1));
    EXPECT_THAT(m.get_ints("u16s").value(), ElementsAre(65535));
    EXPECT_THAT(m.get_ints("i16s").value(), ElementsAre(-7));
    EXPECT_THAT(m.get_ints("u32s").value(), ElementsAre(4000000000));
    EXPECT_THAT(m.get_ints("i32s").value(), ElementsAre());
    EXPECT_THAT(m.get_ints("i64s").value(), ElementsAre(-9));
    EXPECT_THAT(m.get_ints("bools").value(), ElementsAre(1, 0));
    EXPECT_THAT(m.get_floats("f32s").value(), ElementsAre(1.5));
    EXPECT_THAT(m.get_floats("f64s").value(), ElementsAre(0.1));
    EXPECT_THAT(m.get_strings("texts").value(), ElementsAre("x", "", "yz"));
    EXPECT_EQ(m.entries()[0].first, "u8");
    EXPECT_EQ(m.entries().size(), 25U);
  }
}

TEST(GgufReader, TypedReadsNameKeyAndBothTypes) {
  GgufBuilder builder;
  builder.add_string("text", "x").add("big", ValueType::kU64, ~std::uint64_t{0});
  builder.add_array<std::uint64_t>("bigs", ValueType::kU64, {~std::uint64_t{0}}).add_u32("n", 3);
  const auto parsed = parse(builder.build(), "f.gguf");
  ASSERT_TRUE(parsed);
  const Metadata& m = parsed->metadata;
  EXPECT_EQ(m.get_int("none").error().code, StatusCode::kNotFound);
  EXPECT_THAT(m.get_int("none").error().message, HasSubstr("f.gguf: key \"none\""));
  EXPECT_EQ(m.get_int("text").error().message, "[gguf] f.gguf: key \"text\": needs integer, string there");
  EXPECT_THAT(m.get_float("n").error().message, HasSubstr("needs float, u32 there"));
  EXPECT_THAT(m.get_strings("bigs").error().message, HasSubstr("needs array of string, array of u64 there"));
  EXPECT_THAT(m.get_ints("n").error().message, HasSubstr("needs array of integer, u32 there"));
  EXPECT_THAT(m.get_int("bigs").error().message, HasSubstr("needs integer, array of u64 there"));
  EXPECT_THAT(m.get_int("big").error().message, HasSubstr("18446744073709551615"));
  EXPECT_THAT(m.get_ints("bigs").error().message, HasSubstr("18446744073709551615"));
  EXPECT_EQ(m.get_int_or("none", 7).value(), 7);
  EXPECT_EQ(m.get_float_or("none", 0.5).value(), 0.5);
  EXPECT_TRUE(m.get_bool_or("none", true).value());
  EXPECT_EQ(m.get_string_or("none", "d").value(), "d");
  EXPECT_FALSE(m.get_int_or("text", 7));
}

TEST(GgufReader, PlacesTensorsByAlignmentWithoutTheirData) {
  GgufBuilder builder;
  builder.alignment = 64;
  builder.add_u32("general.alignment", 64);
  builder.add_tensor("a", kF32, {3}, 12).add_tensor("b", kQ4_K, {256, 2}, 288).add_tensor("c", kF32, {2, 1, 1, 2}, 16);
  const auto bytes = builder.build();
  const auto parsed = parse(bytes, "f");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->tensors.size(), 3U);
  const std::uint64_t data = (builder.header_bytes + 63) / 64 * 64;
  EXPECT_EQ(parsed->alignment, 64U);
  EXPECT_EQ(parsed->tensors[0].offset, data);
  EXPECT_EQ(parsed->tensors[1].offset, data + 64);
  EXPECT_EQ(parsed->tensors[1].dtype, DType::kQ4_K);
  EXPECT_EQ(parsed->tensors[1].n_bytes, 288U);
  EXPECT_THAT(parsed->tensors[1].dims, ElementsAre(256, 2, 1, 1));
  EXPECT_EQ(parsed->tensors[2].offset, data + 384);
  EXPECT_EQ(parsed->tensors[2].n_dims, 4U);
}

TEST(GgufReader, ReadsABigVocabulary) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 150000; ++i) tokens.push_back("token " + std::to_string(i));
  GgufBuilder builder;
  builder.add_array("tokens", ValueType::kString, tokens);
  const auto parsed = parse(builder.build(), "f");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(std::ranges::equal(parsed->metadata.get_strings("tokens").value(), tokens));
}

TEST(GgufReader, RefusesOtherFilesAndVersions) {
  GgufBuilder builder;
  builder.magic = 0x04034b50;
  expect_corrupt(builder, {"not a GGUF file", "0x46554747", "0x04034b50"});
  for (const std::uint32_t version : {0U, 1U, 4U}) {
    builder = {};
    builder.version = version;
    expect_error(builder, StatusCode::kUnavailable,
                 {"version 2 or 3", "version " + std::to_string(version) + " there"});
  }
  for (const std::uint32_t version : {2U, 3U}) {
    builder = {};
    builder.version = version << 24;
    expect_error(builder, StatusCode::kUnavailable, {"big-endian"});
  }
  const auto empty = parse({}, "f");
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, HasSubstr("needs 4 bytes at offset 0, 0 there"));
}

TEST(GgufReader, ChecksCountsBeforeUse) {
  for (const std::uint64_t count : {std::uint64_t{2}, std::uint64_t{100000}, ~std::uint64_t{0}}) {
    GgufBuilder builder;
    builder.add_u32("k", 1);
    builder.n_keys = count;
    expect_corrupt(builder, {});
    builder = {};
    builder.n_tensors = count;
    expect_corrupt(builder, {std::to_string(count) + " tensors"});
    builder = {};
    builder.begin_array("list", ValueType::kString, count);
    expect_corrupt(builder, {"key \"list\"", "array of string with " + std::to_string(count)});
    builder = {};
    builder.begin_key("text", ValueType::kString).add_raw(count);
    expect_corrupt(builder, {"key \"text\"", std::to_string(count)});
  }
  GgufBuilder builder;
  builder.begin_array("many", ValueType::kU8, (1U << 23) + 1);
  for (int i = 0; i < (1 << 20) + 1; ++i) builder.add_raw(std::uint64_t{0});
  expect_corrupt(builder, {"key \"many\"", "8388609", "8388608"});
}

TEST(GgufReader, RefusesWrongValues) {
  expect_corrupt(GgufBuilder().add("k", static_cast<ValueType>(13), 0), {"key \"k\"", "value type 13", "12"});
  expect_corrupt(GgufBuilder().add("k", ValueType::kBool, std::uint8_t{2}), {"key \"k\"", "0 or 1", "2 there"});
  expect_corrupt(GgufBuilder().add_array<std::uint8_t>("k", ValueType::kBool, {1, 3}), {"key \"k\"", "3 there"});
  expect_corrupt(GgufBuilder().begin_array("k", static_cast<ValueType>(99), 0), {"key \"k\"", "99"});
  expect_error(GgufBuilder().begin_array("k", ValueType::kArray, 1), StatusCode::kUnavailable,
               {"key \"k\"", "array of arrays"});
  expect_corrupt(GgufBuilder().add_u32("k", 1).add_u32("k", 2), {"key \"k\"", "entry 1 repeats entry 0"});
  expect_corrupt(GgufBuilder().add_u32("", 1), {"key 0 of 1", "empty"});
  expect_corrupt(GgufBuilder().add_u32(std::string(65536, 'k'), 1), {"65536", "65535"});
  expect_corrupt(GgufBuilder().add_u32("bad\nname", 1).add_u32("bad\nname", 1), {"\"bad\\x0aname\""});
}

TEST(GgufReader, RefusesOddAlignments) {
  for (const std::uint32_t alignment : {0U, 1U, 4U, 33U, 1U << 21, 0x80000000U})
    expect_corrupt(GgufBuilder().add_u32("general.alignment", alignment),
                   {"key \"general.alignment\"", "8..1048576", std::to_string(alignment) + " there"});
  expect_corrupt(GgufBuilder().add_string("general.alignment", "32"), {"needs integer, string there"});
}

TEST(GgufReader, RefusesWrongTensorEntries) {
  const auto tensor = [](std::uint32_t type, std::vector<std::uint64_t> dims) {
    return GgufBuilder().add_tensor("t", type, std::move(dims), 1024);
  };
  expect_corrupt(tensor(kF32, {}), {"tensor \"t\"", "0 dimensions, 1 to 4"});
  expect_corrupt(tensor(kF32, {1, 1, 1, 1, 1}), {"tensor \"t\"", "5 dimensions, 1 to 4"});
  expect_corrupt(tensor(kF32, {4, 0}), {"tensor \"t\"", "dimension 1", "0 there"});
  expect_corrupt(tensor(kQ4_K, {128}), {"tensor \"t\"", "multiple of 256", "128 there"});
  expect_corrupt(tensor(kF32, {std::uint64_t{1} << 32, std::uint64_t{1} << 32}), {"4294967296 x 4294967296"});
  expect_corrupt(tensor(kF32, {~std::uint64_t{0}}), {"18446744073709551615"});
  expect_corrupt(tensor(kF32, {2, std::uint64_t{1} << 63, 2}), {"9223372036854775808"});
  expect_corrupt(tensor(99, {4}), {"tensor \"t\"", "unknown tensor type 99"});
  expect_error(tensor(15, {256}), StatusCode::kUnavailable, {"tensor \"t\"", "type 15 (Q8_K) is not supported"});
  expect_error(tensor(28, {4}), StatusCode::kUnavailable, {"28 (F64)"});
  expect_corrupt(GgufBuilder().add_tensor("t", kF32, {4}, 16).add_tensor("t", kF32, {4}, 16),
                 {"tensor \"t\"", "entry 1"});
  expect_corrupt(GgufBuilder().add_tensor("", kF32, {4}, 16), {"tensor 0 of 1", "empty"});
  expect_corrupt(GgufBuilder().add_tensor(std::string(65, 'n'), kF32, {4}, 16), {"65 bytes", "64"});
}

TEST(GgufReader, RefusesTensorsOutsideTheFileOrOverlapping) {
  GgufBuilder cut;
  cut.add_tensor("a", kF32, {8}, 32).add_tensor("b", kF32, {8}, 32);
  cut.data_bytes = 63;
  expect_corrupt(cut, {"tensor \"b\"", "needs 32 bytes at offset 32", "63 bytes of data there"});
  cut.data_bytes = 0;
  expect_corrupt(cut, {"tensor \"a\"", "0 bytes of data there"});
  GgufBuilder far;
  far.data_bytes = 64;
  far.add_tensor("a", kF32, {8}, 32, ~std::uint64_t{31});
  expect_corrupt(far, {"tensor \"a\"", "18446744073709551584"});
  expect_corrupt(GgufBuilder().add_tensor("a", kF32, {8}, 32, 4), {"tensor \"a\"", "multiple of 32, 4 there"});
  GgufBuilder over;
  over.add_tensor("a", kF32, {16}, 64, 32).add_tensor("b", kF32, {8}, 32, 64);
  over.data_bytes = 96;
  const std::uint64_t data = [&] {
    over.build();
    return (over.header_bytes + 31) / 32 * 32;
  }();
  expect_corrupt(over, {"tensor \"b\"", "starts at " + std::to_string(data + 64), "tensor \"a\"",
                        "ends at " + std::to_string(data + 96)});
}

}  // namespace
}  // namespace zinc_rt::gguf
