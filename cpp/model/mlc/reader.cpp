#include "model/mlc/reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/thread_pool.h"
#include "kernels/common/half.h"
#include "model/mlc/index.h"
#include "model/mlc/json.h"
#include "model/mlc/md5.h"
#include "model/mlc/metadata.h"
#include "model/mlc/params.h"
#include "model/mlc/repack.h"
#include "model/mlc/tokenizer_import.h"

namespace zinc_rt::mlc {
namespace {

constexpr const char* kIndexNames[] = {"ndarray-cache.json", "tensor-cache.json"};
constexpr std::size_t kAlignment = 64;  // alignment of each tensor in memory, in bytes

std::string index_path(const std::string& folder) {
  for (const char* name : kIndexNames)
    if (const auto path = folder + "/" + name; is_there(path)) return path;
  return "";
}

constexpr ElementType kFloats[] = {ElementType::kF16, ElementType::kF32, ElementType::kBF16};
constexpr ElementType kWords[] = {ElementType::kU32};
constexpr ElementType kScales[] = {ElementType::kF16};

// Owns the memory that holds all tensors of a folder.
class Memory {
 public:
  static Result<std::shared_ptr<Memory>> allocate(std::uint64_t n_bytes) {
    auto memory = std::make_shared<Memory>();
    memory->data_ = static_cast<std::byte*>(
        ::operator new(std::max<std::uint64_t>(n_bytes, 1), std::align_val_t{kAlignment}, std::nothrow));
    if (memory->data_ == nullptr)
      return fail(StatusCode::kExhausted, "[mlc] needs {} bytes of memory for the weights, not there", n_bytes);
    return memory;
  }
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete(data_, std::align_val_t{kAlignment}); }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

// Found holds a parameter and the records of the index that contain its data.
struct Found {
  const Param* param = nullptr;
  const Record* weight = nullptr;  // record of the plain matrix, or of its q_weight
  const Record* scale = nullptr;   // the q_scale; nullptr if the matrix is not quantized
};

class Reader {
 public:
  explicit Reader(std::string folder) : folder_(std::move(folder)) {}

  Result<gguf::Metadata> metadata() {
    if (!zinc_rt::is_folder(folder_))
      return fail(StatusCode::kNotFound, "[mlc] {}: needs a folder, none there", folder_);
    for (const char* name : {"mlc-chat-config.json", "tokenizer.json"})
      if (!is_there(folder_ + "/" + name))
        return fail(StatusCode::kNotFound, "[mlc] {}: a model's folder needs {}, not there", folder_, name);
    gguf::Metadata out;
    out.set_place(folder_);
    ZRT_TRY(const std::string config, read_text(folder_ + "/mlc-chat-config.json"));
    ZRT_TRY(config_, parse_chat_config(config, folder_ + "/mlc-chat-config.json"));
    auto name = std::filesystem::path(folder_).lexically_normal();
    if (!name.has_filename()) name = name.parent_path();
    ZRT_CHECK_OK(add_model_keys(config_, name.filename().string(), out));
    TokenizerFiles files{folder_, {}, {}};
    ZRT_TRY(files.tokenizer, read_text(folder_ + "/tokenizer.json"));
    if (is_there(folder_ + "/tokenizer_config.json")) {
      ZRT_TRY(files.config, read_text(folder_ + "/tokenizer_config.json"));
    }
    ZRT_CHECK_OK(add_tokenizer(files, config_, out));
    return out;
  }

  Result<Weights::Source> read() {
    Weights::Source source;
    source.path = folder_;
    ZRT_TRY(source.metadata, metadata());
    place_ = index_path(folder_);
    if (place_.empty())
      return fail(StatusCode::kNotFound, "[mlc] {}: needs {} or {}, neither there", folder_, kIndexNames[0],
                  kIndexNames[1]);
    ZRT_TRY(const std::string text, read_text(place_));
    ZRT_TRY(index_, parse_index(text, place_));
    ZRT_CHECK_OK(match());  // before the shards are read, so that a wrong index is reported without hashing gigabytes
    ZRT_CHECK_OK(open_shards());
    ZRT_CHECK_OK(check_hashes());
    ZRT_CHECK_OK(fill(source));
    for (const MappedFile& shard : shards_) ZRT_CHECK_OK(shard.is_whole());
    for (const MappedFile& shard : shards_) source.file_bytes += shard.bytes().size();
    return source;
  }

 private:
  // Finds the records that contain each parameter. Every record of the index must belong to one parameter.
  Status match() {
    std::unordered_map<std::string_view, const Record*> by_name;
    for (const Record& record : index_.records) by_name.emplace(record.name, &record);
    const auto namings = namings_of(config_.architecture);
    const auto has_embedding = [&](Naming naming) {
      const std::string name(embedding_name(naming));
      return by_name.contains(name + ".weight") || by_name.contains(name + ".q_weight");
    };
    const auto naming = std::ranges::find_if(namings, has_embedding);
    if (naming == namings.end())
      return fail(StatusCode::kNotFound, "[mlc] {}: needs the token embedding {}.q_weight of {}, not among {} records",
                  place_, embedding_name(namings[0]), config_.model_type, index_.records.size());
    params_ = params_of(config_, *naming);
    std::unordered_set<const Record*> used;
    for (const Param& param : params_) {
      const bool quantized = !param.is_norm && (param.is_end ? config_.quantized_ends : config_.quantized_layers);
      Found found{.param = &param};
      const auto take = [&](std::string_view tail, std::vector<std::uint64_t> shape,
                            std::span<const ElementType> types) -> Result<const Record*> {
        const auto it = by_name.find(param.name + std::string(tail));
        if (it == by_name.end())
          return fail(StatusCode::kNotFound, "[mlc] {}: {}{} needed for {}, not among {} records", place_, param.name,
                      tail, config_.quantization, index_.records.size());
        const Record& record = *it->second;
        if (std::ranges::find(types, record.type) == types.end())
          return fail(StatusCode::kCorrupt, "[mlc] {}: {} needs {} for {}, {} there", place_, record.name,
                      to_string(types[0]), config_.quantization, to_string(record.type));
        if (record.shape != shape)
          return fail(StatusCode::kCorrupt, "[mlc] {}: {} needs [{}] by mlc-chat-config.json, [{}] there", place_,
                      record.name, fmt::join(shape, ", "), fmt::join(record.shape, ", "));
        used.insert(&record);
        return &record;
      };
      if (quantized) {
        if (param.n_columns % kGroup != 0)
          return fail(StatusCode::kUnavailable, "[mlc] {}: {} has rows of {} elements; {} needs a multiple of {}",
                      place_, param.name, param.n_columns, config_.quantization, kGroup);
        ZRT_TRY(found.weight, take(".q_weight", {param.n_rows(), param.n_columns / 8}, kWords));
        ZRT_TRY(found.scale, take(".q_scale", {param.n_rows(), param.n_columns / kGroup}, kScales));
      } else if (param.is_norm) {
        ZRT_TRY(found.weight, take(".weight", {param.n_columns}, kFloats));
      } else {
        ZRT_TRY(found.weight, take(".weight", {param.n_rows(), param.n_columns}, kFloats));
      }
      found_.push_back(found);
    }
    for (const Record& record : index_.records) {
      const bool is_vision = config_.model_type == "phi3_v" && record.name.starts_with("vision_embed_tokens.");
      if (!used.contains(&record) && !is_vision)
        return fail(StatusCode::kUnavailable, "[mlc] {}: {} is no parameter of {} with {} layers", place_,
                    gguf::quoted(record.name), config_.model_type, config_.n_layers);
    }
    return {};
  }

  Status open_shards() {
    constexpr std::string_view kAdvice = "index and shards must be of one version: take all files from one place anew";
    for (const Shard& shard : index_.shards) {
      const std::string path = folder_ + "/" + shard.file;
      if (!is_there(path))
        return fail(StatusCode::kNotFound, "[mlc] {}: shard {} of {} bytes needed, not there", folder_, shard.file,
                    shard.n_bytes);
      ZRT_TRY(MappedFile mapped, MappedFile::open(path));
      if (mapped.bytes().size() != shard.n_bytes)
        return fail(StatusCode::kCorrupt, "[mlc] {}: shard {}: {} bytes by the index, {} there; {}", folder_,
                    shard.file, shard.n_bytes, mapped.bytes().size(), kAdvice);
      shards_.push_back(std::move(mapped));
    }
    return {};
  }

  Status check_hashes() {
    std::vector<std::string> hashes(shards_.size());
    pool_.parallel_for(shards_.size(), [&](std::uint64_t i, int) {
      if (!index_.shards[i].md5.empty()) hashes[i] = md5_hex(shards_[i].bytes());
    });
    std::size_t n_unchecked = 0;
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const Shard& shard = index_.shards[i];
      n_unchecked += shard.md5.empty() ? 1 : 0;
      if (hashes[i] != shard.md5)
        return fail(
            StatusCode::kCorrupt,
            "[mlc] {}: shard {}: MD5 {} by the index, {} there; the shard is damaged, or index and shards are of "
            "different versions: take all files from one place anew",
            folder_, shard.file, shard.md5, hashes[i]);
    }
    if (n_unchecked > 0)
      log().warn("{}: the index has no MD5 of {} shards; only their sizes were checked", folder_, n_unchecked);
    return {};
  }

  const std::byte* data(const Record& record) const { return shards_[record.shard].bytes().data() + record.offset; }

  static DType stored_as(const Found& found) {
    if (found.scale != nullptr) return DType::kQ4_0;
    if (found.param->is_norm) return DType::kF32;
    switch (found.weight->type) {
      case ElementType::kF16: return DType::kF16;
      case ElementType::kBF16: return DType::kBF16;
      default: return DType::kF32;
    }
  }

  // Lays out all tensors in memory, then repacks them on several threads. Each parameter is one task.
  Status fill(Weights::Source& source) {
    std::vector<std::uint64_t> offsets;
    std::vector<std::size_t> first_piece;
    std::uint64_t end = 0;
    const auto add = [&](std::string name, DType dtype, std::uint64_t n_columns, std::uint64_t n_rows, bool is_vector) {
      gguf::TensorInfo info{.name = std::move(name), .dtype = dtype};
      info.n_dims = is_vector ? 1 : 2;
      info.dims = {n_columns, n_rows, 1, 1};
      info.n_bytes = row_bytes(dtype, n_columns) * n_rows;
      offsets.push_back(end);
      end = (end + info.n_bytes + kAlignment - 1) / kAlignment * kAlignment;
      source.infos.push_back(std::move(info));
    };
    for (const Found& found : found_) {
      first_piece.push_back(offsets.size());
      for (const Piece& piece : found.param->pieces)
        add(piece.tensor, stored_as(found), found.param->n_columns, piece.n_rows, found.param->is_norm);
    }
    const auto vectors = rope_tensors(config_);
    const std::size_t first_vector = offsets.size();
    for (const auto& [name, values] : vectors) add(name, DType::kF32, values.size(), 1, true);

    ZRT_TRY(const auto memory, Memory::allocate(end));
    pool_.parallel_for(found_.size(), [&](std::uint64_t i, int) {
      std::uint64_t row = 0;
      for (std::size_t p = 0; p < found_[i].param->pieces.size(); ++p) {
        const Piece& piece = found_[i].param->pieces[p];
        copy_piece(found_[i], piece, row, memory->data() + offsets[first_piece[i] + p]);
        row += piece.n_rows;
      }
    });
    for (std::size_t i = 0; i < vectors.size(); ++i)
      std::memcpy(memory->data() + offsets[first_vector + i], vectors[i].second.data(),
                  vectors[i].second.size() * sizeof(float));
    for (std::size_t i = 0; i < source.infos.size(); ++i)
      source.data.emplace_back(memory->data() + offsets[i], source.infos[i].n_bytes);
    source.owner = memory;
    return {};
  }

  // Writes the rows of one piece to `out`, in the order of the GGUF tensor. The piece starts at row `first_row` of the
  // parameter.
  void copy_piece(const Found& found, const Piece& piece, std::uint64_t first_row, std::byte* out) const {
    const std::uint64_t n_columns = found.param->n_columns;
    const std::byte* in = data(*found.weight);
    if (found.param->is_norm) return copy_norm(found, out);
    if (found.scale == nullptr) {
      const std::uint64_t n_bytes = row_bytes(stored_as(found), n_columns);
      for (std::uint64_t row = 0; row < piece.n_rows; ++row)
        std::memcpy(out + row * n_bytes, in + (first_row + mlc_row(piece, row)) * n_bytes, n_bytes);
      return;
    }
    const std::uint64_t n_groups = n_columns / kGroup;
    const std::byte* scales = data(*found.scale);
    for (std::uint64_t row = 0; row < piece.n_rows; ++row) {
      const std::uint64_t from = (first_row + mlc_row(piece, row)) * n_groups;
      q4f16_to_q4_0(in + from * kGroupWordBytes, scales + from * kGroupScaleBytes, n_groups,
                    out + row * n_groups * kQ4_0BlockBytes);
    }
  }

  void copy_norm(const Found& found, std::byte* out) const {
    const std::byte* in = data(*found.weight);
    if (found.weight->type == ElementType::kF32) {
      std::memcpy(out, in, found.param->n_columns * sizeof(float));
      return;
    }
    for (std::uint64_t i = 0; i < found.param->n_columns; ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, in + i * sizeof(half), sizeof(half));
      const float value = found.weight->type == ElementType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
      std::memcpy(out + i * sizeof(value), &value, sizeof(value));
    }
  }

  std::string folder_, place_;
  ChatConfig config_;
  Index index_;
  std::vector<Param> params_;
  std::vector<Found> found_;
  std::vector<MappedFile> shards_;
  ThreadPool pool_{std::max(1, usable_threads())};
};

}  // namespace

bool is_folder(const std::string& path) {
  return zinc_rt::is_folder(path);
}

Result<Weights::Source> read_folder(const std::string& path) {
  return Reader(path).read();
}

Result<gguf::Metadata> read_metadata(const std::string& path) {
  return Reader(path).metadata();
}

}  // namespace zinc_rt::mlc
