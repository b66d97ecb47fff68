// A file mapped read-only into memory. Pages are read when first touched, never at open.
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

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Releases the memory of the whole pages in `bytes`, which is a part of a MappedFile. Reading them again reads the file
// again.
void release_pages(std::span<const std::byte> bytes);

}  // namespace zinc_rt
