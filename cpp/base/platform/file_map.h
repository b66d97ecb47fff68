// FileMap holds the bytes of an open file in memory. Linux and macOS map the file, so a page is read when it is first
// touched. WASI has no maps, so the whole file is read at once.
// If another process shortens a mapped file, the system sends SIGBUS for the missing pages. The program then reads
// zeros there instead of crashing, and lost_pages() returns true.
// Thread rule: immutable after open; the bytes live as long as the object.
#pragma once

#include <cstddef>
#include <span>

#include "zinc_rt/status.h"

namespace zinc_rt {

class FileMap {
 public:
  FileMap() = default;
  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  ~FileMap();

  // Takes the first `size` bytes of the file. Returns 0, or the error number of the system. The descriptor may be
  // closed afterwards.
  int open(int fd, std::size_t size);
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Returns whether a page that was read had been replaced by zeros.
  bool lost_pages() const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  struct MappedRange* range_ = nullptr;
};

// Releases the memory of the pages that lie wholly in `bytes`, a part of a FileMap. The system reads a released page
// from the file again when it is next touched. Does nothing where files are not mapped.
void release_pages(std::span<const std::byte> bytes);

}  // namespace zinc_rt
