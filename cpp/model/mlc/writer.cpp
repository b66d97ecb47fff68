#include "model/mlc/writer.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "base/output_file.h"
#include "base/thread_pool.h"
#include "kernels/common/half.h"
#include "model/mlc/chat_config_export.h"
#include "model/mlc/json.h"
#include "model/mlc/md5.h"
#include "model/mlc/params.h"
#include "model/mlc/repack.h"
#include "model/mlc/tokenizer_export.h"

namespace zinc_rt::mlc {
namespace {

namespace fs = std::filesystem;
// The size of a shard, 32 MiB as in MLC's own folders. A larger parameter gets a shard of its own.
constexpr std::uint64_t kShardBytes = std::uint64_t{32} << 20;

// Collects parameters into shard files, and writes the index that says where each parameter is.
class ShardWriter {
 public:
  explicit ShardWriter(std::string folder) : folder_(std::move(folder)) {}

  Status add(const std::string& name, std::vector<std::uint64_t> shape, const char* dtype,
             std::span<const std::byte> data) {
    if (!pending_.empty() && pending_.size() + data.size() > kShardBytes) ZRT_CHECK_OK(flush());
    records_.push_back({{"name", name},
                        {"shape", shape},
                        {"dtype", dtype},
                        {"format", "f32-to-bf16"},
                        {"nbytes", data.size()},
                        {"byteOffset", pending_.size()}});
    pending_.insert(pending_.end(), data.begin(), data.end());
    return {};
  }

  // Writes the last shard and the index. `n_parameters` is the number of weights of the model, which the index states.
  Status finish(std::uint64_t n_parameters) {
    if (!pending_.empty()) ZRT_CHECK_OK(flush());
    const nlohmann::ordered_json index{
        {"metadata",
         {{"ParamSize", n_records_},
          {"ParamBytes", static_cast<double>(n_bytes_)},
          {"BitsPerParam",
           8.0 * static_cast<double>(n_bytes_) / static_cast<double>(std::max<std::uint64_t>(n_parameters, 1))}}},
        {"records", shards_}};
    ZRT_TRY(OutputFile file, OutputFile::create(folder_ + "/ndarray-cache.json"));
    ZRT_CHECK_OK(file.write(index.dump(1)));
    return file.commit();
  }

  std::uint64_t n_shards() const { return shards_.size(); }

 private:
  Status flush() {
    const std::string name = fmt::format("params_shard_{}.bin", shards_.size());
    ZRT_TRY(OutputFile file, OutputFile::create(folder_ + "/" + name));
    ZRT_CHECK_OK(file.write(pending_));
    ZRT_CHECK_OK(file.commit());
    n_records_ += records_.size();
    n_bytes_ += pending_.size();
    shards_.push_back({{"dataPath", name},
                       {"format", "raw-shard"},
                       {"nbytes", pending_.size()},
                       {"records", std::move(records_)},
                       {"md5sum", md5_hex(pending_)}});
    records_ = nlohmann::ordered_json::array();
    pending_.clear();
    return {};
  }

  std::string folder_;
  std::vector<std::byte> pending_;
  nlohmann::ordered_json records_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json shards_ = nlohmann::ordered_json::array();
  std::uint64_t n_records_ = 0, n_bytes_ = 0;
};

// Creates and owns the temporary folder that is being written. The destructor removes the folder, unless become() gave
// it its final name.
class PartFolder {
 public:
  explicit PartFolder(std::string path) : path_(std::move(path)) {}
  PartFolder(const PartFolder&) = delete;
  PartFolder& operator=(const PartFolder&) = delete;
  ~PartFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  Status become(const std::string& name) {
    std::error_code error;
    fs::rename(path_, name, error);
    if (error) return fail(StatusCode::kUnavailable, "[mlc] cannot finish {}: {}", name, error.message());
    path_.clear();
    return {};
  }

 private:
  std::string path_;
};

class Writer {
 public:
  Writer(const Weights& weights, const WriteOptions& options) : weights_(weights), options_(options) {}

  Result<Written> run(std::string folder) {
    // so that the suffix ".part" becomes part of the folder's name
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    ZRT_TRY(config_, config_of(weights_));
    ZRT_TRY(const TokenizerTexts tokenizer, export_tokenizer(weights_.metadata()));
    for (const auto id : {tokenizer.eos_id, tokenizer.eot_id})
      if (id) config_.eos_ids.push_back(*id);
    ZRT_CHECK_OK(add_listed_ends());
    params_ = params_of(config_, namings_of(config_.architecture)[0]);
    ZRT_CHECK_OK(check_tensors());

    std::error_code error;
    if (fs::exists(folder, error) && !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
      return fail(StatusCode::kInvalidArgument, "[mlc] {}: needs a name that is free, something is there", folder);
    PartFolder part(folder + ".part");
    fs::remove_all(part.path(), error);
    if (!fs::create_directories(part.path(), error))
      return fail(StatusCode::kUnavailable, "[mlc] cannot make the folder {}: {}", part.path(), error.message());
    ShardWriter shards(part.path());
    std::uint64_t done = 0;
    for (const Param& param : params_) {
      ZRT_CHECK_OK(param.is_norm ? write_norm(param, shards) : write_matrix(param, shards));
      for (const Piece& piece : param.pieces) done += weights_.find(piece.tensor)->data.size();
      if (options_.on_progress) ZRT_CHECK_OK(options_.on_progress(done, weights_.total_bytes()));
    }
    std::uint64_t n_parameters = 0;
    for (const Tensor& tensor : weights_.all()) n_parameters += tensor.n_elements();
    ZRT_CHECK_OK(shards.finish(n_parameters));
    ZRT_TRY(const std::string_view source, weights_.metadata().get_string_or("tokenizer.chat_template", ""));
    for (const auto& [name, text] :
         {std::pair{"tokenizer.json", tokenizer.tokenizer}, std::pair{"tokenizer_config.json", tokenizer.config},
          std::pair{"mlc-chat-config.json", export_chat_config(config_, tokenizer, source)}}) {
      ZRT_TRY(OutputFile file, OutputFile::create(fmt::format("{}/{}", part.path(), name)));
      ZRT_CHECK_OK(file.write(text));
      ZRT_CHECK_OK(file.commit());
    }
    written_.n_shards = shards.n_shards();
    for (const auto& entry : fs::directory_iterator(part.path())) written_.n_bytes += entry.file_size();
    if (options_.on_progress) ZRT_CHECK_OK(options_.on_progress(weights_.total_bytes(), weights_.total_bytes()));
    fs::remove(folder, error);  // removes an empty folder that may have the final name
    ZRT_CHECK_OK(part.become(folder));
    return written_;
  }

 private:
  // Adds the end tokens that tokenizer.ggml.eos_token_ids lists and that have no key of their own.
  Status add_listed_ends() {
    constexpr std::string_view kKey = "tokenizer.ggml.eos_token_ids";
    if (!weights_.metadata().contains(kKey)) return {};
    ZRT_TRY(const auto ids, weights_.metadata().get_ints(kKey));
    for (const std::int64_t id : ids)
      if (id >= 0 && std::ranges::find(config_.eos_ids, static_cast<std::uint64_t>(id)) == config_.eos_ids.end())
        config_.eos_ids.push_back(static_cast<std::uint64_t>(id));
    return {};
  }

  // Checks that each tensor of the model has a counterpart of the same shape among MLC's parameters.
  Status check_tensors() const {
    std::unordered_set<std::string_view> known;  // tensors that the config stores as numbers
    if (config_.rope_scaling == RopeScaling::kLlama3) known = {"rope_freqs.weight"};
    if (config_.rope_scaling == RopeScaling::kLongrope)
      known = {"rope_factors_long.weight", "rope_factors_short.weight"};
    for (const Param& param : params_) {
      if (!param.is_norm && param.n_columns % kGroup != 0)
        return fail(StatusCode::kUnavailable, "[mlc] {}: rows of {} need a multiple of {} elements, {} there",
                    weights_.path(), gguf::quoted(param.pieces[0].tensor), kGroup, param.n_columns);
      for (const Piece& piece : param.pieces) {
        const auto found = param.is_norm ? weights_.require(piece.tensor, {param.n_columns})
                                         : weights_.require(piece.tensor, {param.n_columns, piece.n_rows});
        if (!found) return std::unexpected(found.error());
        if (!traits((*found)->dtype).is_weight)
          return fail(StatusCode::kUnavailable, "[mlc] {}: tensor {}: type {} has no place in MLC", weights_.path(),
                      gguf::quoted(piece.tensor), to_string((*found)->dtype));
        known.insert(piece.tensor);
      }
    }
    for (const Tensor& tensor : weights_.all())
      if (!known.contains(tensor.name))
        return fail(StatusCode::kUnavailable, "[mlc] {}: tensor {} has no place in MLC's {}", weights_.path(),
                    gguf::quoted(tensor.name), config_.model_type);
    return {};
  }

  void read_row(const Tensor& tensor, std::uint64_t row, std::span<float> out) const {
    const std::byte* data = tensor.data.data() + row * row_bytes(tensor.dtype, out.size());
    if (tensor.dtype == DType::kF32) {
      std::memcpy(out.data(), data, out.size_bytes());
    } else {
      options_.dequantize(tensor.dtype, data, out);
    }
  }

  Status write_norm(const Param& param, ShardWriter& shards) {
    const Tensor& tensor = *weights_.find(param.pieces[0].tensor);
    std::vector<float> values(param.n_columns);
    read_row(tensor, 0, values);
    std::vector<std::uint16_t> halves;
    for (const float value : values) halves.push_back(f32_to_f16(value));
    return shards.add(param.name + ".weight", {param.n_columns}, "float16", std::as_bytes(std::span(halves)));
  }

  Status write_matrix(const Param& param, ShardWriter& shards) {
    const std::uint64_t n_groups = param.n_columns / kGroup;
    std::vector<std::byte> words(param.n_rows() * n_groups * kGroupWordBytes);
    std::vector<std::byte> scales(param.n_rows() * n_groups * kGroupScaleBytes);
    std::uint64_t first_row = 0;
    for (const Piece& piece : param.pieces) {
      const Tensor& tensor = *weights_.find(piece.tensor);
      std::atomic<bool> is_finite = true;
      constexpr std::uint64_t kRows = 64;  // rows that one task of the thread pool converts
      pool_.parallel_for((piece.n_rows + kRows - 1) / kRows, [&](std::uint64_t task, int) {
        std::vector<float> values(param.n_columns);
        for (std::uint64_t row = task * kRows; row < std::min(piece.n_rows, (task + 1) * kRows); ++row) {
          const std::uint64_t to = (first_row + mlc_row(piece, row)) * n_groups;
          std::byte* const words_to = words.data() + to * kGroupWordBytes;
          std::byte* const scales_to = scales.data() + to * kGroupScaleBytes;
          if (tensor.dtype == DType::kQ4_0) {
            q4_0_to_q4f16(tensor.data.data() + row * n_groups * kQ4_0BlockBytes, n_groups, words_to, scales_to);
          } else {
            read_row(tensor, row, values);
            if (!quantize_q4f16(values, words_to, scales_to)) is_finite = false;
          }
        }
      });
      if (!is_finite)
        return fail(StatusCode::kCorrupt, "[mlc] {}: tensor {}: needs numbers that f16 scales can hold, others there",
                    weights_.path(), gguf::quoted(tensor.name));
      (tensor.dtype == DType::kQ4_0 ? written_.n_exact : written_.n_quantized) += 1;
      first_row += piece.n_rows;
    }
    ZRT_CHECK_OK(shards.add(param.name + ".q_weight", {param.n_rows(), param.n_columns / 8}, "uint32", words));
    return shards.add(param.name + ".q_scale", {param.n_rows(), n_groups}, "float16", scales);
  }

  const Weights& weights_;
  const WriteOptions& options_;
  ChatConfig config_;
  std::vector<Param> params_;
  Written written_;
  ThreadPool pool_{std::max(1, usable_threads())};
};

}  // namespace

Result<Written> write_folder(const std::string& folder, const Weights& weights, const WriteOptions& options) {
  return Writer(weights, options).run(folder);
}

}  // namespace zinc_rt::mlc
