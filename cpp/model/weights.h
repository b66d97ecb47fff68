// The tensors of an open model file, by name. Owns the mapping; tensor data stays in the file until it is touched.
// Thread rule: immutable after open; spans live as long as the object (a move keeps them).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "model/gguf/reader.h"

namespace zinc_rt {

struct Tensor {
  std::string_view name;  // points into the Weights
  DType dtype = DType::kF32;
  std::uint32_t n_dims = 1;
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};  // dims[0] is the contiguous one (elements a row)
  std::span<const std::byte> data;

  std::uint64_t n_elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
};

class Weights {
 public:
  static Result<Weights> open(const std::string& path);
  explicit Weights(gguf::GgufFile file);
  Weights(Weights&&) noexcept = default;
  Weights& operator=(Weights&&) noexcept = default;

  const gguf::GgufFile& file() const { return file_; }
  std::span<const Tensor> all() const { return tensors_; }  // in file order
  const Tensor* find(std::string_view name) const;          // nullptr when absent
  // The tensor, if it is there with just these dimensions (trailing ones may be left out).
  Result<const Tensor*> require(std::string_view name, std::initializer_list<std::uint64_t> dims) const;

  std::uint64_t total_bytes() const;
  std::vector<std::pair<DType, std::uint64_t>> bytes_by_dtype() const;  // in the order of DType, absent ones left out

 private:
  gguf::GgufFile file_;
  std::vector<Tensor> tensors_;  // tensors_[i] is file_.tensors()[i]
};

}  // namespace zinc_rt
