// MappedFile is a file mapped read-only into memory. The system reads a page when it is first touched, not at open.
// Where files cannot be mapped, open() reads all of it (base/platform/file_map.h). If another process shortens the
// file, the program reads zeros for the missing pages, and is_whole() returns an error.
// Thread rule: immutable after open; the mapping lives as long as the object.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/platform/file_map.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return map_.bytes(); }
  const std::string& path() const { return path_; }
  // Checks that no byte that was read has been replaced by zeros. Call it after reading and before the bytes are used.
  // Errors: kCorrupt if the file became shorter after open().
  Status is_whole() const;

 private:
  std::string path_;
  FileMap map_;
  int fd_ = -1;  // stays open because another file may get this path later
};

}  // namespace zinc_rt
