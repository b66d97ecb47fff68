// Mapped files and the table of environment variables.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
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

TEST(MappedFile, AFileThatIsCutReadsAsZerosAndIsNotWhole) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto path = std::filesystem::path(::testing::TempDir()) / "zrt_cut_file";
  // Within a page that stays there is no signal; where pages are gone each of them sends one.
  for (const std::size_t left : {3 * page - 1, page, std::size_t{0}}) {
    std::ofstream(path) << std::string(3 * page, 'a');
    const auto file = MappedFile::open(path.string());
    const auto other = MappedFile::open(path.string());
    ASSERT_TRUE(file && other && file->is_whole());
    EXPECT_EQ(file->bytes()[0], std::byte{'a'});
    std::filesystem::resize_file(path, left);
    std::size_t n_zeros = 0;
    for (const std::byte byte : file->bytes()) n_zeros += byte == std::byte{0} ? 1 : 0;
    EXPECT_EQ(n_zeros, 3 * page - left);
    const auto status = file->is_whole();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, StatusCode::kCorrupt);
    EXPECT_THAT(status.error().message, HasSubstr(fmt::format("{} bytes were there, {} are now", 3 * page, left)));
    // It may be written anew: what was read stays what it is.
    std::filesystem::resize_file(path, 3 * page);
    EXPECT_EQ(file->is_whole().has_value(), left == 3 * page - 1);
    // Another mapping that nobody read is as whole as the file.
    EXPECT_TRUE(other->is_whole());
    std::filesystem::remove(path);
  }
}

TEST(MappedFile, ASignalOfAnotherAddressEndsTheProcessAsBefore) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "zrt_foreign_file";
  std::ofstream(path) << std::string(16, 'a');
  const auto file = MappedFile::open(path.string());
  ASSERT_TRUE(file);
  const int fd = ::open(path.c_str(), O_RDONLY);
  const auto* foreign = static_cast<const char*>(::mmap(nullptr, 16, PROT_READ, MAP_PRIVATE, fd, 0));
  ::close(fd);
  std::filesystem::resize_file(path, 0);
  EXPECT_DEATH(static_cast<void>(*static_cast<const volatile char*>(foreign)), "");
  std::filesystem::remove(path);
}

TEST(OutputFile, MayBeItsOwnersAloneWhateverTheUmask) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "zrt_private_file";
  const auto rights = [](const std::filesystem::path& of) {
    return static_cast<unsigned>(std::filesystem::status(of).permissions());
  };
  for (const ::mode_t mask : {0000, 0022, 0377}) {
    std::ofstream(path) << "old";
    std::ofstream(path.string() + ".part") << "left by a kill";
    for (const auto& one : {path, std::filesystem::path(path.string() + ".part")})
      std::filesystem::permissions(one, std::filesystem::perms(0644));
    const auto before = ::umask(mask);
    auto file = OutputFile::create(path.string(), FileAccess::kOwnerOnly);
    ::umask(before);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(rights(path.string() + ".part"), 0600u);
    ASSERT_TRUE(file->write(std::string_view("new")) && file->commit());
    EXPECT_EQ(rights(path), 0600u);
  }
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
