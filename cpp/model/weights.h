// Weights holds the tensors and metadata of an open model, by name. The model is a GGUF file, or an MLC folder that is
// read as if it were one. The object owns the memory of the tensors, which is either a mapping of the file or memory
// that a reader filled. Thread rule: immutable after open. Spans are valid as long as the object lives, and a move
// keeps them valid.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "model/gguf/reader.h"

namespace zinc_rt {

struct Tensor {
  std::string_view name;      // points to memory that the Weights object owns
  DType dtype = DType::kF32;  // the type that executors compute with
  std::uint32_t n_dims = 1;
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};  // dims[0] is the number of elements in a row, which are contiguous
  std::span<const std::byte> data;                // the tensor's bytes as the file stores them
  DType stored = DType::kF32;                     // type of `data`; differs from dtype only after use_fixed16()

  std::uint64_t n_elements() const { return dims[0] * n_rows(); }
  std::uint64_t n_rows() const { return dims[1] * dims[2] * dims[3]; }
  std::uint64_t computed_bytes() const { return n_rows() * row_bytes(dtype, dims[0]); }
};

// Loan names a tensor that a model lends to another, and how the other calls it.
struct Loan {
  std::string_view tensor, as;
};

class Weights {
 public:
  // The reader of a file format fills this and passes it to the constructor. Metadata has GGUF's keys, and tensors have
  // GGUF's names and shapes.
  struct Source {
    std::string path;
    std::uint64_t file_bytes = 0;  // sum of the sizes of all files
    gguf::Metadata metadata;
    std::vector<gguf::TensorInfo> infos;  // names are unique; `shard` and `offset` are not used
    // data[i] belongs to infos[i]; its size is row_bytes of the type times the number of rows
    std::vector<std::span<const std::byte>> data;
    std::shared_ptr<const void> owner;  // keeps the memory of `data` alive
    bool is_mapped = false;             // whether `data` are parts of mapped files
    std::function<Status()> is_whole;   // implements Weights::is_whole(); empty if no file is mapped
  };

  // Opens a model. `path` is a GGUF file (of a split model the first file) or an MLC folder.
  static Result<Weights> open(const std::string& path);
  // Returns the metadata() of the model that open() would return, but reads no tensor.
  static Result<gguf::Metadata> open_metadata(const std::string& path);
  explicit Weights(Source source);
  explicit Weights(gguf::GgufFile file);
  Weights(Weights&&) noexcept = default;
  Weights& operator=(Weights&&) noexcept = default;

  const std::string& path() const { return path_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  const gguf::Metadata& metadata() const { return metadata_; }
  std::span<const gguf::TensorInfo> infos() const { return infos_; }  // the input for read_config()
  std::span<const Tensor> all() const { return tensors_; }            // all tensors, in the order of the file
  const Tensor* find(std::string_view name) const;                    // returns nullptr if no tensor has this name
  // Returns the tensor of this name. Errors: kNotFound if it is missing; an error with both shapes if its dimensions
  // are not `dims`. Trailing dimensions of 1 may be omitted.
  Result<const Tensor*> require(std::string_view name, std::initializer_list<std::uint64_t> dims) const;

  // Adds those tensors that this model lacks and `lender` has, and keeps `lender` alive. For draft models that share
  // matrices with their model.
  void borrow(std::shared_ptr<const Weights> lender, std::span<const Loan> loans);

  // Makes executors compute with fixed16 (model/fixed16.h): sets the dtype of each tensor for which fits_fixed16() is
  // true. `data` is not converted, so read these tensors with copy_rows().
  void use_fixed16();
  // Copies rows [first, first + n) of a tensor to `to`, converted to the format of its dtype. Uses up to `n_threads`
  // threads.
  void copy_rows(const Tensor& tensor, std::uint64_t first, std::uint64_t n, std::byte* to, unsigned n_threads) const;

  // Releases the memory of those pages of a tensor that can be read from the file again. Call it after you copied the
  // tensor's bytes.
  void release(const Tensor& tensor) const;

  // Checks that the file was not truncated while its tensors were read. Call it after you read them. Errors: kCorrupt
  // if the file became shorter, because its missing bytes were read as zeros.
  Status is_whole() const;

  std::uint64_t total_bytes() const;
  // Returns how many bytes of the file each type takes, in the order of DType. Types that do not occur are left out.
  std::vector<std::pair<DType, std::uint64_t>> bytes_by_dtype() const;
  // Returns how many bytes each type takes that executors compute with (Tensor::dtype), in the order of DType.
  std::vector<std::pair<DType, std::uint64_t>> computed_bytes_by_dtype() const;

 private:
  std::string path_;
  std::uint64_t file_bytes_ = 0;
  gguf::Metadata metadata_;
  std::vector<gguf::TensorInfo> infos_;
  std::vector<Tensor> tensors_;  // tensors_[i] belongs to infos_[i]
  std::unordered_map<std::string_view, std::size_t>
      index_;  // keys point into infos_, whose elements move in borrow() alone
  std::shared_ptr<const void> owner_;
  bool is_mapped_ = false;
  std::function<Status()> is_whole_;
  std::shared_ptr<const Weights> lender_;
  std::size_t n_own_ = 0;  // the tensors after the first n_own_ are the lender's
};

}  // namespace zinc_rt
