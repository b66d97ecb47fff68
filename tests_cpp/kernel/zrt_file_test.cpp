// The .zrt container: byte for byte against a hand-made file, and every field damaged.
#include "kernel/zrt_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace zinc_rt::kernel {
namespace {

using ::testing::HasSubstr;

// A kernel of 12 bytes of code with two symbols, one of them twice, and 3 bytes of debug info.
constexpr unsigned char kFile[] = {
    'T',  'R',  'Z',  0,                                                  // magic
    1,    0,    0xff, 0,                                                  // abi_version, gpu_target
    12,   0,    0,    0,    4,    0,    0,    0,                          // code_size, entry_offset
    3,    0,    0,    0,    8,    0,    0,    0,                          // buffer_count, push_const_bytes
    32,   0,    0,    0,                                                  // subgroup_size
    64,   0,    0,    0,    2,    0,    0,    0,    1,    0,    0,    0,  // workgroup_size
    0,    4,    0,    0,    96,   0,    0,    0,    48,   0,    0,    0,    7, 0,
    0,    0,                                      // lds_bytes, vgpr_count, sgpr_count, occupancy_hint
    76,   0,    0,    0,    30,   0,    0,    0,  // name_offset, name_size
    0xbe, 0xba, 0xfe, 0xca, 0xbe, 0xba, 0xfe, 0xca, 0x11, 0x22, 0x33, 0x44,  // code: two placeholders, an instruction
    'A',  'D',  'D',  0,    'd',  'i',  'm',  ':',  'n',  0,    0,    0,    0, 0,  // "dim:n" at 0
    'd',  'i',  'm',  ':',  'd',  0,    4,    0,    0,    0,                       // "dim:d" at 4
    'x',  0,    8,    0,    0,    0,                                               // "x" at 8
    9,    8,    7};
static_assert(sizeof(kFile) == 64 + 12 + 30 + 3);

std::vector<std::byte> file_bytes() {
  const auto* at = reinterpret_cast<const std::byte*>(kFile);
  return {at, at + sizeof(kFile)};
}

TEST(ZrtFile, ReadsTheHandMadeFile) {
  const auto file = read_zrt(file_bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->target, Target::kCpu);
  EXPECT_EQ(file->name, "ADD");
  EXPECT_EQ(file->entry_offset, 4u);
  EXPECT_EQ(file->buffer_count, 3u);
  EXPECT_EQ(file->push_const_bytes, 8u);
  EXPECT_EQ(file->subgroup_size, 32u);
  EXPECT_EQ(file->workgroup_size[0], 64u);
  EXPECT_EQ(file->workgroup_size[1], 2u);
  EXPECT_EQ(file->workgroup_size[2], 1u);
  EXPECT_EQ(file->lds_bytes, 1024u);
  EXPECT_EQ(file->vgpr_count, 96u);
  EXPECT_EQ(file->sgpr_count, 48u);
  EXPECT_EQ(file->occupancy_hint, 7u);
  EXPECT_EQ(file->symbols, (std::vector<Symbol>{{"dim:n", 0}, {"dim:d", 4}, {"x", 8}}));
  EXPECT_EQ(file->code.size(), 12u);
  EXPECT_EQ(file->debug_info.size(), 3u);
}

TEST(ZrtFile, WritesItBackByteForByte) {
  EXPECT_EQ(write_zrt(*read_zrt(file_bytes())), file_bytes());
  ZrtFile empty;
  const auto bytes = write_zrt(empty);
  EXPECT_EQ(bytes.size(), kZrtHeaderBytes + 1);
  EXPECT_EQ(read_zrt(bytes), empty);
}

TEST(ZrtFile, EveryTargetRoundTrips) {
  for (const int number : {1, 2, 3, 4, 0x10, 0x20, 0x30, 0xff}) {
    ZrtFile file;
    file.target = static_cast<Target>(number);
    EXPECT_NE(to_string(file.target), "?");
    EXPECT_EQ(read_zrt(write_zrt(file))->target, file.target);
  }
}

TEST(ZrtFile, Patch) {
  auto file = *read_zrt(file_bytes());
  EXPECT_EQ(file.unpatched(), "dim:n");
  ASSERT_TRUE(file.patch("dim:n", 5));
  EXPECT_EQ(file.unpatched(), "dim:d");
  ASSERT_TRUE(file.patch("dim:d", 0x01020304));
  EXPECT_EQ(file.unpatched(), "");
  auto expected = file_bytes();
  const unsigned char patched[] = {5, 0, 0, 0, 4, 3, 2, 1};
  std::memcpy(expected.data() + 64, patched, 8);
  EXPECT_EQ(write_zrt(file), expected);
  const auto missing = file.patch("dim:z", 1);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, StatusCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("dim:z"));
}

TEST(ZrtFile, ASymbolMayStandSeveralTimes) {
  ZrtFile file;
  file.code.resize(8);
  file.symbols = {{"n", 0}, {"n", 4}};
  ASSERT_TRUE(file.patch("n", 0x0a0b0c0d));
  EXPECT_EQ(std::memcmp(file.code.data(), file.code.data() + 4, 4), 0);
  EXPECT_EQ(file.code[7], std::byte{0x0a});
}

struct Damage {
  std::size_t offset, size;
  std::uint32_t value;
  const char* words;
};
const Damage kDamages[] = {
    {0, 4, 0x5a5254 + 1, "magic 0x005a5255"},
    {4, 2, 2, "abi_version 2, 1 wanted"},
    {6, 2, 5, "gpu_target 0x5"},
    {8, 4, 46, "code_size 46, 45 bytes there"},
    {8, 4, 0xffffffff, "code_size 4294967295"},
    {12, 4, 13, "entry_offset 13 of 12"},
    {16, 4, 65, "buffer_count 65, at most 64"},
    {20, 4, 9, "push_const_bytes 9"},
    {20, 4, 4100, "push_const_bytes 4100"},
    {24, 4, 16, "subgroup_size 16"},
    {28, 4, 0, "workgroup_size 0"},
    {32, 4, 1u << 21, "workgroup_size 2097152"},
    {36, 4, 0, "workgroup_size 0"},
    {56, 4, 75, "name_offset 75, 76 wanted"},
    {56, 4, 0xffffffff, "name_offset 4294967295"},
    {60, 4, 0, "name_size 0"},
    {60, 4, 34, "name_size 34, 33 bytes there"},
    {60, 4, 3, "does not end"},
    {60, 4, 12, "needs 4 bytes, 2 there"},
    {64 + 12 + 10, 4, 9, "symbol dim:n lies at 9 of 12"},
    {64 + 12 + 10, 4, 0xffffffff, "symbol dim:n lies at 4294967295"},
    {64 + 12 + 4, 1, 0, "has no name"},
};

TEST(ZrtFile, EveryDamagedFieldIsNamed) {
  for (const Damage& damage : kDamages) {
    auto bytes = file_bytes();
    std::memcpy(bytes.data() + damage.offset, &damage.value, damage.size);
    const auto file = read_zrt(bytes);
    ASSERT_FALSE(file) << damage.words;
    EXPECT_EQ(file.error().code, StatusCode::kCorrupt);
    EXPECT_THAT(file.error().message, HasSubstr(damage.words));
  }
}

TEST(ZrtFile, Truncations) {
  const auto bytes = file_bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto file = read_zrt({bytes.data(), n});
    // Debug info is what follows the names, so a file may end anywhere in it.
    EXPECT_EQ(file.has_value(), n >= 64 + 12 + 30) << n;
    if (!file) {
      EXPECT_EQ(file.error().code, StatusCode::kCorrupt);
    }
  }
}

TEST(ZrtFile, EveryByteMayBeWrong) {
  for (std::size_t i = 0; i < sizeof(kFile); ++i)
    for (int value = 0; value < 256; value += 5) {
      auto bytes = file_bytes();
      bytes[i] = static_cast<std::byte>(value);
      if (const auto file = read_zrt(bytes)) {
        EXPECT_EQ(write_zrt(*file), bytes) << "byte " << i;
      }
    }
}

}  // namespace
}  // namespace zinc_rt::kernel
