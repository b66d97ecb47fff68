#include "model/weights.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace zinc_rt {

Result<Weights> Weights::open(const std::string& path) {
  ZRT_TRY(gguf::GgufFile file, gguf::GgufFile::open(path));
  return Weights(std::move(file));
}

Weights::Weights(gguf::GgufFile file) : file_(std::move(file)) {
  tensors_.reserve(file_.tensors().size());
  for (const gguf::TensorInfo& info : file_.tensors())
    tensors_.push_back({info.name, info.dtype, info.n_dims, info.dims, file_.data(info)});
}

const Tensor* Weights::find(std::string_view name) const {
  const gguf::TensorInfo* info = file_.find_tensor(name);
  return info == nullptr ? nullptr : &tensors_[static_cast<std::size_t>(info - file_.tensors().data())];
}

Result<const Tensor*> Weights::require(std::string_view name, std::initializer_list<std::uint64_t> dims) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr)
    return fail(StatusCode::kNotFound, "[weights] {}: tensor {}: needs [{}], not there", file_.path(),
                gguf::quoted(name), fmt::join(dims, ", "));
  std::array<std::uint64_t, 4> wanted{1, 1, 1, 1};
  const bool fits = dims.size() <= wanted.size();
  if (fits) std::ranges::copy(dims, wanted.begin());
  if (!fits || wanted != tensor->dims)
    return fail(StatusCode::kCorrupt, "[weights] {}: tensor {}: needs [{}], [{}] there", file_.path(),
                gguf::quoted(name), fmt::join(dims, ", "),
                fmt::join(std::span(tensor->dims).first(tensor->n_dims), ", "));
  return tensor;
}

std::uint64_t Weights::total_bytes() const {
  std::uint64_t sum = 0;
  for (const Tensor& tensor : tensors_) sum += tensor.data.size();
  return sum;
}

std::vector<std::pair<DType, std::uint64_t>> Weights::bytes_by_dtype() const {
  std::array<std::uint64_t, static_cast<std::size_t>(DType::kCount)> sums{};
  for (const Tensor& tensor : tensors_) sums[static_cast<std::size_t>(tensor.dtype)] += tensor.data.size();
  std::vector<std::pair<DType, std::uint64_t>> out;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != 0) out.emplace_back(static_cast<DType>(i), sums[i]);
  return out;
}

}  // namespace zinc_rt
