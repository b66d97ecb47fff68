#include "model/mlc/index.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "model/gguf/metadata.h"
#include "model/mlc/json.h"

namespace zinc_rt::mlc {
namespace {

// Limits of the index, far above every real model. The product of any two limits fits in 63 bits.
constexpr std::size_t kMaxShards = 1U << 16;
constexpr std::size_t kMaxRecords = 1U << 20;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 48;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxRank = 4;

struct TypeRow {
  std::string_view name;
  ElementType type;
  std::uint64_t bytes;
};
constexpr TypeRow kTypes[] = {{"uint32", ElementType::kU32, 4},
                              {"float16", ElementType::kF16, 2},
                              {"float32", ElementType::kF32, 4},
                              {"bfloat16", ElementType::kBF16, 2}};

// Returns whether a shard's name can only mean a file in the folder itself. Separators, "..", hidden files and URL
// queries are refused, because the index is not trusted.
bool is_plain_file_name(std::string_view name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

Result<std::string> read_md5(const Fields& fields) {
  ZRT_TRY(std::string md5, fields.string_or("md5sum", ""));
  std::ranges::transform(md5, md5.begin(), [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  const bool is_hex = md5.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!md5.empty() && (md5.size() != 32 || !is_hex))
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs 32 hexadecimal digits, {} there", fields.at("md5sum"),
                gguf::quoted(md5));
  return md5;
}

Status read_shape(const Fields& fields, Record& record, std::uint64_t& n_elements) {
  ZRT_TRY(const Json* shape, fields.array("shape"));
  if (shape->empty() || shape->size() > kMaxRank)
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs 1 to {} extents, {} there", fields.at("shape"), kMaxRank,
                shape->size());
  n_elements = 1;
  for (const Json& extent : *shape) {
    const bool counts = extent.is_number_unsigned() && extent.get<std::uint64_t>() >= 1;
    if (!counts || extent.get<std::uint64_t>() > kMaxBytes / n_elements)
      return fail(StatusCode::kCorrupt, "[mlc] {}: needs extents from 1 and at most {} elements, {} there",
                  fields.at("shape"), kMaxBytes, describe(extent));
    n_elements *= extent.get<std::uint64_t>();
    record.shape.push_back(extent.get<std::uint64_t>());
  }
  return {};
}

Result<Record> read_record(const Json& value, const std::string& place, const Shard& shard) {
  ZRT_TRY(Fields fields, Fields::of(value, place));
  Record record;
  ZRT_TRY(record.name, fields.string("name"));
  if (record.name.empty() || record.name.size() > kMaxNameBytes)
    return fail(StatusCode::kCorrupt, "[mlc] {}: needs 1 to {} bytes, {} there", fields.at("name"), kMaxNameBytes,
                record.name.size());
  ZRT_TRY(fields, Fields::of(value, fmt::format("{} {}", place, gguf::quoted(record.name))));
  ZRT_TRY(const std::string dtype, fields.string("dtype"));
  const auto* type = std::ranges::find(kTypes, dtype, &TypeRow::name);
  if (type == std::end(kTypes))
    return fail(StatusCode::kUnavailable, "[mlc] {}: needs uint32, float16, float32 or bfloat16, {} there",
                fields.at("dtype"), gguf::quoted(dtype));
  ZRT_TRY(const std::string format, fields.string_or("format", "raw"));
  if (format != "raw" && format != "f32-to-bf16")
    return fail(StatusCode::kUnavailable, "[mlc] {}: needs raw or f32-to-bf16, {} there", fields.at("format"),
                gguf::quoted(format));
  if (type->type == ElementType::kF32 && format == "f32-to-bf16") type = &kTypes[3];
  record.type = type->type;
  std::uint64_t n_elements = 0;
  ZRT_CHECK_OK(read_shape(fields, record, n_elements));
  ZRT_TRY(record.n_bytes, fields.count("nbytes", 1, kMaxBytes));
  if (record.n_bytes != n_elements * type->bytes)
    return fail(StatusCode::kCorrupt, "[mlc] {}: says {}, the shape and the type {} say {}", fields.at("nbytes"),
                record.n_bytes, dtype, n_elements * type->bytes);
  ZRT_TRY(record.offset, fields.count("byteOffset", 0, kMaxBytes));
  if (record.offset > shard.n_bytes || record.n_bytes > shard.n_bytes - record.offset)
    return fail(StatusCode::kCorrupt, "[mlc] {}: {} bytes at offset {}, the shard {} has {}", fields.place(),
                record.n_bytes, record.offset, shard.file, shard.n_bytes);
  return record;
}

Status check_overlaps(const Index& index, const std::string& place) {
  std::vector<const Record*> order;
  for (const Record& record : index.records) order.push_back(&record);
  std::ranges::sort(order, {}, [](const Record* r) { return std::pair(r->shard, r->offset); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const Record& before = *order[i - 1];
    const Record& record = *order[i];
    if (before.shard == record.shard && before.offset + before.n_bytes > record.offset)
      return fail(StatusCode::kCorrupt, "[mlc] {}: {} starts at {} of {}, inside {} that ends at {}", place,
                  gguf::quoted(record.name), record.offset, index.shards[record.shard].file, gguf::quoted(before.name),
                  before.offset + before.n_bytes);
  }
  return {};
}

}  // namespace

std::string_view to_string(ElementType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return row.name;
  return "unknown";
}

Result<Index> parse_index(std::string_view text, const std::string& place) {
  ZRT_TRY(const Json document, parse_json(text, place));
  ZRT_TRY(const Fields root, Fields::of(document, place));
  ZRT_TRY(const Json* shards, root.array("records"));
  if (shards->size() > kMaxShards)
    return fail(StatusCode::kCorrupt, "[mlc] {}: {} shards, at most {} allowed", place, shards->size(), kMaxShards);
  Index index;
  std::unordered_set<std::string> files, names;
  for (const Json& value : *shards) {
    const std::string shard_place = fmt::format("{}: shard {}", place, index.shards.size());
    ZRT_TRY(const Fields fields, Fields::of(value, shard_place));
    Shard shard;
    ZRT_TRY(shard.file, fields.string("dataPath"));
    if (!is_plain_file_name(shard.file))
      return fail(StatusCode::kCorrupt, "[mlc] {}: needs the name of a file in the folder, {} there",
                  fields.at("dataPath"), gguf::quoted(shard.file));
    if (!files.insert(shard.file).second)
      return fail(StatusCode::kCorrupt, "[mlc] {}: {} is an earlier shard too", shard_place, shard.file);
    ZRT_TRY(const std::string format, fields.string_or("format", "raw-shard"));
    if (format != "raw-shard")
      return fail(StatusCode::kUnavailable, "[mlc] {}: needs raw-shard, {} there", fields.at("format"),
                  gguf::quoted(format));
    ZRT_TRY(shard.n_bytes, fields.count("nbytes", 0, kMaxBytes));
    ZRT_TRY(shard.md5, read_md5(fields));
    ZRT_TRY(const Json* records, fields.array("records"));
    if (records->size() > kMaxRecords - index.records.size())
      return fail(StatusCode::kCorrupt, "[mlc] {}: {} records more, at most {} allowed", shard_place, records->size(),
                  kMaxRecords - index.records.size());
    for (std::size_t i = 0; i < records->size(); ++i) {
      ZRT_TRY(Record record, read_record((*records)[i], fmt::format("{}: record {}", shard_place, i), shard));
      record.shard = static_cast<std::uint32_t>(index.shards.size());
      if (!names.insert(record.name).second)
        return fail(StatusCode::kCorrupt, "[mlc] {}: record {} repeats the name {}", shard_place, i,
                    gguf::quoted(record.name));
      index.records.push_back(std::move(record));
    }
    index.shards.push_back(std::move(shard));
  }
  ZRT_CHECK_OK(check_overlaps(index, place));
  return index;
}

}  // namespace zinc_rt::mlc
