// OutputFile writes a file that appears whole or not at all: it is written under another name in the same folder, then
// renamed. If the path is a link, the link's target is replaced in this way. Two kinds of path are written directly:
// devices and pipes, and paths that stand for a descriptor of this process (/dev/stdout, /dev/fd/3). A descriptor is
// written from its current position on.
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt {

enum class FileAccess : std::uint8_t {
  kByUmask,
  kOwnerOnly,  // mode 0600 from the first byte on, whatever the umask is, for files with users' texts
};

class OutputFile {
 public:
  static Result<OutputFile> create(std::string path, FileAccess access = FileAccess::kByUmask);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();  // removes the file if it was not committed

  // Write the next bytes. Each call may fail with the system's error, and the message contains the path. After an error
  // the object can only be destroyed, or committed by a caller for whom a part of the bytes is better than nothing.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  Status pad_to(std::uint64_t alignment);  // appends zeros up to a multiple of `alignment`
  // Flushes the file to disk and renames it; an existing file of this name is replaced.
  Status commit();
  std::uint64_t n_bytes() const { return n_bytes_; }

 private:
  OutputFile() = default;

  std::string path_;
  std::string part_path_;  // path of the temporary file; empty if path_ itself is written
  int fd_ = -1;
  std::uint64_t n_bytes_ = 0;
};

}  // namespace zinc_rt
