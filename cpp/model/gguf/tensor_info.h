// TensorInfo is one entry of a GGUF file's tensor table: the name, type, shape and place of a tensor.
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
  std::uint32_t n_dims = 1;                       // number of dimensions, 1 to 4
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};  // dims[0] is the number of elements in a row, which are contiguous
  std::uint32_t shard = 0;                        // number of the file that contains the tensor, in a split model
  std::uint64_t offset = 0;                       // bytes from the start of the file that contains the tensor
  std::uint64_t n_bytes = 0;
};

// FileTensorType describes a tensor type of the GGUF format and its number in the file. `dtype` is empty for a type
// that this runtime cannot read.
struct FileTensorType {
  std::uint32_t number;
  std::string_view name;  // name as the GGUF format spells it
  std::optional<DType> dtype;
};
const FileTensorType* find_tensor_type(std::uint32_t number);  // returns nullptr if the format has no such number
const FileTensorType* find_tensor_type(DType dtype);           // returns nullptr if no file can contain this type

}  // namespace zinc_rt::gguf
