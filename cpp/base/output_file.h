// A file that appears whole or not at all: written under another name beside its place, then renamed. Of a link, its
// target; devices, pipes and the like are written as they are, and so is what a descriptor of this process
// (/dev/stdout, /dev/fd/3) stands for, from where it is. Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt {

class OutputFile {
 public:
  static Result<OutputFile> create(std::string path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();  // takes away what was not committed

  // Errors of the system come from any of these, with the path; after one, only destruction is left.
  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  Status pad_to(std::uint64_t alignment);  // zeros up to a multiple
  Status commit();                         // to disk, then to its name; replaces a file of that name
  std::uint64_t n_bytes() const { return n_bytes_; }

 private:
  OutputFile() = default;

  std::string path_;
  std::string part_path_;  // empty: path_ itself is written
  int fd_ = -1;
  std::uint64_t n_bytes_ = 0;
};

}  // namespace zinc_rt
