// Reads GGUF v2 and v3 (little endian): the header, the metadata and the tensor table. The file is mapped, and tensor
// data is not read here. Every count, length, offset and product of dimensions is checked before it is used. Thread
// rule: immutable after open.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "model/gguf/metadata.h"
#include "model/gguf/tensor_info.h"

namespace zinc_rt::gguf {

// Holds the contents of the header of one file (or memory image). parse() returns it; tensor data is not read. `place`
// is the file name for messages.
struct ParsedFile {
  std::uint32_t version = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // `shard` is 0 and offsets count from the file's start. No two tensors overlap.
  std::uint64_t alignment = 32;
};
Result<ParsedFile> parse(std::span<const std::byte> file, const std::string& place);

class GgufFile {
 public:
  // Opens a file and parses its header. If the file is the first part of a split model (NAME-00001-of-0000N.gguf),
  // opens all parts.
  static Result<GgufFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint32_t version() const { return version_; }
  const Metadata& metadata() const { return metadata_; }
  Metadata take_metadata() { return std::move(metadata_); }  // moves the metadata out; metadata() is empty afterwards
  std::span<const TensorInfo> tensors() const { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const;  // returns nullptr if the file has no such tensor
  std::span<const std::byte> data(const TensorInfo& tensor) const;
  std::uint64_t file_bytes() const;  // returns the sum of the sizes of all shards
  // Checks that the bytes that were read came from the file, and are not zeros in place of a missing part. Errors:
  // kCorrupt if a shard was truncated while it was mapped and the missing part was read.
  Status is_whole() const;
  std::size_t n_shards() const { return shards_.size(); }

 private:
  Status open_shard(const std::string& shard_path, std::uint32_t no, std::uint32_t count);
  Status add_shard(MappedFile mapped, std::vector<TensorInfo> tensors);

  std::string path_;
  std::uint32_t version_ = 0;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<MappedFile> shards_;
};

}  // namespace zinc_rt::gguf
