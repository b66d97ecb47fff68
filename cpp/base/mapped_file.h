// A file mapped read-only into memory. Pages are read when first touched, never at open. Where another process has cut the
// file meanwhile, the kernel sends SIGBUS; here zeros are read instead, and is_whole() tells it.
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
  // Ask it before relying on what was read. Errors: kCorrupt, when the file is shorter than it was.
  Status is_whole() const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int fd_ = -1;  // open all the time, since another file may get the name
  struct MappedRange* range_ = nullptr;
};

// Releases the memory of the whole pages in `bytes`, which is a part of a MappedFile. Reading them again reads the file
// again.
void release_pages(std::span<const std::byte> bytes);

}  // namespace zinc_rt
