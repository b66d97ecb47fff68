// One entry of a GGUF file's tensor table.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/dtype.h"

namespace zinc_rt::gguf {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::uint32_t n_dims = 1;                       // 1..4
  std::array<std::uint64_t, 4> dims{1, 1, 1, 1};  // dims[0] is the contiguous one (elements a row)
  std::uint32_t shard = 0;                        // which file of a split model
  std::uint64_t offset = 0;                       // bytes from the start of that file
  std::uint64_t n_bytes = 0;
};

}  // namespace zinc_rt::gguf
