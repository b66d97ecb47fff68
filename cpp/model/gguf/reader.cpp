#include "model/gguf/reader.h"

#include <utility>

#include "base/error.h"
#include "base/read_number.h"

namespace zinc_rt::gguf {
namespace {

// ShardName holds the parts of the file name of a shard, such as PREFIX-00001-of-00003.gguf.
struct ShardName {
  std::string prefix;
  std::uint32_t number = 0;  // number of the shard, which counts from 1
  std::uint32_t count = 0;

  std::string path(std::uint32_t shard_number) const {
    return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, shard_number, count);
  }
};

bool parse_shard_name(std::string_view path, ShardName& out) {
  constexpr std::string_view kPattern = "-00001-of-00003.gguf";
  if (path.size() < kPattern.size()) return false;
  const std::string_view tail = path.substr(path.size() - kPattern.size());
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf") return false;
  out.prefix = path.substr(0, path.size() - kPattern.size());
  return read_number(tail.substr(1, 5), out.number) && read_number(tail.substr(10, 5), out.count);
}

// Holds what the keys of one file of a split model say about the split. `no` counts from 0. `count` is 1 for a file
// that is not split.
struct Split {
  std::int64_t no = 0;
  std::int64_t count = 1;
  std::int64_t n_tensors = -1;  // total number of tensors; -1 if the file does not say
};

Result<Split> split_of(const Metadata& metadata) {
  Split split;
  ZRT_TRY(split.count, metadata.get_int_or("split.count", 1));
  ZRT_TRY(split.no, metadata.get_int_or("split.no", 0));
  ZRT_TRY(split.n_tensors, metadata.get_int_or("split.tensors.count", -1));
  return split;
}

// Checks by its name and by its keys that the file at `path` is the first of its split, and returns the parts of its
// name.
Result<ShardName> first_shard_name(const std::string& path, const Split& split) {
  constexpr std::int64_t kMaxShards = 99999;  // the largest number that the five digits of a shard's name can express
  if (split.count > kMaxShards)
    return fail(StatusCode::kCorrupt, "[gguf] {}: key \"split.count\": {}, at most {} allowed", path, split.count,
                kMaxShards);
  ShardName name;
  if (!parse_shard_name(path, name))
    return fail(StatusCode::kInvalidArgument,
                "[gguf] {}: shard {} of {}, but the name does not end in -{:05}-of-{:05}.gguf: the other shards cannot "
                "be found",
                path, split.no + 1, split.count, split.no + 1, split.count);
  if (name.count != split.count)
    return fail(StatusCode::kCorrupt, "[gguf] {}: the name says {} shards, key \"split.count\" says {}", path,
                name.count, split.count);
  if (split.no != 0)
    return fail(StatusCode::kInvalidArgument, "[gguf] {}: shard {} of {}: open the first shard, {}", path, split.no + 1,
                split.count, name.path(1));
  if (name.number != 1)
    return fail(StatusCode::kCorrupt, "[gguf] {}: the name says shard {}, key \"split.no\" says {}", path, name.number,
                split.no + 1);
  return name;
}

}  // namespace

Result<GgufFile> GgufFile::open(const std::string& path) {
  GgufFile file;
  file.path_ = path;
  ZRT_TRY(MappedFile first, MappedFile::open(path));
  ZRT_TRY(ParsedFile parsed, parse(first.bytes(), path));
  ZRT_TRY(const Split split, split_of(parsed.metadata));
  file.version_ = parsed.version;
  file.metadata_ = std::move(parsed.metadata);
  ZRT_CHECK_OK(file.add_shard(std::move(first), std::move(parsed.tensors)));
  if (split.count > 1) {
    ZRT_TRY(const ShardName name, first_shard_name(path, split));
    for (std::uint32_t no = 1; no < name.count; ++no) ZRT_CHECK_OK(file.open_shard(name.path(no + 1), no, name.count));
  }
  if (split.n_tensors >= 0 && static_cast<std::uint64_t>(split.n_tensors) != file.tensors_.size())
    return fail(StatusCode::kCorrupt, "[gguf] {}: key \"split.tensors.count\": says {}, {} there in {} shards", path,
                split.n_tensors, file.tensors_.size(), file.shards_.size());
  ZRT_CHECK_OK(file.is_whole());
  return file;
}

Status GgufFile::is_whole() const {
  for (const MappedFile& shard : shards_) ZRT_CHECK_OK(shard.is_whole());
  return {};
}

Status GgufFile::open_shard(const std::string& shard_path, std::uint32_t no, std::uint32_t count) {
  auto mapped = MappedFile::open(shard_path);
  if (!mapped)
    return fail(mapped.error().code, "[gguf] {}: shard {} of {} is missing: {}", path_, no + 1, count,
                mapped.error().message);
  ZRT_TRY(ParsedFile parsed, parse(mapped->bytes(), shard_path));
  ZRT_TRY(const Split split, split_of(parsed.metadata));
  if (split.no != no || split.count != count)
    return fail(StatusCode::kCorrupt, "[gguf] {}: needs shard {} of {}, shard {} of {} there", shard_path, no + 1,
                count, split.no + 1, split.count);
  return add_shard(std::move(*mapped), std::move(parsed.tensors));
}

Status GgufFile::add_shard(MappedFile mapped, std::vector<TensorInfo> tensors) {
  const auto shard = static_cast<std::uint32_t>(shards_.size());
  for (TensorInfo& tensor : tensors) {
    tensor.shard = shard;
    const auto [it, is_new] = index_.try_emplace(tensor.name, tensors_.size());
    if (!is_new)
      return fail(StatusCode::kCorrupt, "[gguf] {}: tensor {}: in shard {} and in shard {}", mapped.path(),
                  quoted(tensor.name), tensors_[it->second].shard + 1, shard + 1);
    tensors_.push_back(std::move(tensor));
  }
  shards_.push_back(std::move(mapped));
  return {};
}

const TensorInfo* GgufFile::find_tensor(std::string_view name) const {
  const auto it = index_.find(std::string(name));
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

std::span<const std::byte> GgufFile::data(const TensorInfo& tensor) const {
  return shards_[tensor.shard].bytes().subspan(tensor.offset, tensor.n_bytes);
}

std::uint64_t GgufFile::file_bytes() const {
  std::uint64_t sum = 0;
  for (const MappedFile& shard : shards_) sum += shard.bytes().size();
  return sum;
}

}  // namespace zinc_rt::gguf
