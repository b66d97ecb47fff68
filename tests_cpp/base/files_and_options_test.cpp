// Mapped files and the table of environment variables.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/options.h"
#include "base/output_file.h"

namespace zinc_rt {
namespace {

using ::testing::HasSubstr;

TEST(MappedFile, MapsMovesAndFails) {
  const auto path = (std::filesystem::path(::testing::TempDir()) / "zrt_mapped_file").string();
  std::ofstream(path) << "hello";
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->path(), path);
  MappedFile moved = std::move(*file);
  EXPECT_TRUE(file->bytes().empty());
  ASSERT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(moved.bytes()[4], std::byte{'o'});
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_TRUE(MappedFile::open(path)->bytes().empty());
  std::filesystem::remove(path);
  EXPECT_EQ(MappedFile::open(path).error().code, StatusCode::kNotFound);
  const auto folder = MappedFile::open(::testing::TempDir());
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("not a regular file"));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(path).error().message, HasSubstr("not a regular file"));
  std::filesystem::remove(path);
}

TEST(OutputFile, ReplacesWhatALinkNamesAndWritesDirectlyToWhatIsNoFile) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "zrt_output_file";
  std::filesystem::create_directory(folder);
  const auto write = [](const std::filesystem::path& path) -> Status {
    ZRT_TRY(auto file, OutputFile::create(path.string()));
    ZRT_CHECK_OK(file.write(std::string_view("new")));
    return file.commit();
  };
  std::ofstream(folder / "target") << "old";
  std::filesystem::create_symlink("target", folder / "link");
  std::filesystem::create_symlink("later", folder / "dangling");
  for (const char* name : {"link", "dangling"}) {
    EXPECT_TRUE(write(folder / name));
    EXPECT_TRUE(std::filesystem::is_symlink(folder / name));
    EXPECT_EQ(std::filesystem::file_size(folder / name), 3u);
  }
  EXPECT_EQ(std::filesystem::file_size(folder / "target"), 3u);

  const auto fifo = folder / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(write(fifo));
  char got[8];
  EXPECT_EQ(::read(reader, got, sizeof got), 3);
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  EXPECT_THAT(write(folder).error().message, HasSubstr("Is a directory"));
  std::filesystem::remove_all(folder);
}

TEST(Options, TableIsWellFormed) {
  std::set<std::string_view> names;
  for (const auto& variable : options::variables()) {
    // HF_: Hugging Face's own, which its users have set already.
    EXPECT_TRUE(variable.name.starts_with("ZINC_RT_") || variable.name.starts_with("HF_")) << variable.name;
    EXPECT_TRUE(names.insert(variable.name).second);
    EXPECT_FALSE(variable.help.empty());
  }
}

TEST(Options, ValueOrFallback) {
  ::unsetenv("ZINC_RT_CHUNK_CAP");
  EXPECT_FALSE(options::is_set("ZINC_RT_CHUNK_CAP"));
  EXPECT_EQ(options::get("ZINC_RT_CHUNK_CAP"), "0");
  ::setenv("ZINC_RT_CHUNK_CAP", "", 1);
  EXPECT_FALSE(options::is_set("ZINC_RT_CHUNK_CAP"));
  ::setenv("ZINC_RT_CHUNK_CAP", "32", 1);
  EXPECT_EQ(*options::get_int("ZINC_RT_CHUNK_CAP", 0, 32), 32);
  for (const auto* wrong : {"33", "-1", "x", "3x", "99999999999999999999"}) {
    ::setenv("ZINC_RT_CHUNK_CAP", wrong, 1);
    const auto value = options::get_int("ZINC_RT_CHUNK_CAP", 0, 32);
    ASSERT_FALSE(value) << wrong;
    EXPECT_THAT(value.error().message, HasSubstr(wrong));
    EXPECT_THAT(value.error().message, HasSubstr("0 to 32"));
  }
  ::unsetenv("ZINC_RT_CHUNK_CAP");
}

}  // namespace
}  // namespace zinc_rt
