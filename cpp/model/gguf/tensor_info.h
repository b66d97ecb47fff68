// One entry of a GGUF file's tensor table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace zinc_rt::gguf {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::uint32_t n_dims = 1;                       // 1..4
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};  // dims[0] is contiguous: the elements of a row
  std::uint32_t shard = 0;                        // which file of a split model
  std::uint64_t offset = 0;                       // bytes from the start of that file
  std::uint64_t n_bytes = 0;
};

// A GGUF tensor type, by its number in the file. `dtype` is empty for a type that this runtime does not read.
struct FileTensorType {
  std::uint32_t number;
  std::string_view name;  // as the GGUF format spells it
  std::optional<DType> dtype;
};
const FileTensorType* find_tensor_type(std::uint32_t number);  // nullptr when the format knows no such number
const FileTensorType* find_tensor_type(DType dtype);           // nullptr when no file has such tensors

}  // namespace zinc_rt::gguf
