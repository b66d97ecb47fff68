// MappedFile is a file mapped read-only into memory. The system reads a page when it is first touched, not at open. If
// another process shortens the file, the kernel sends SIGBUS for the missing pages. This class then reads zeros there
// instead of crashing, and is_whole() returns an error.
// Thread rule: immutable after open; the mapping lives as long as the object.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "zinc_rt/status.h"

namespace zinc_rt {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Checks that no byte that was read has been replaced by zeros. Call it after reading and before the bytes are used.
  // Errors: kCorrupt if the file became shorter after open().
  Status is_whole() const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int fd_ = -1;  // stays open because another file may get this path later
  struct MappedRange* range_ = nullptr;
};

// Releases the memory of the pages that lie wholly in `bytes`, a part of a MappedFile. The system reads a released page
// from the file again when it is next touched.
void release_pages(std::span<const std::byte> bytes);

}  // namespace zinc_rt
