#include "engine/draft_vocabulary.h"

#include <cstring>
#include <string_view>

#include "base/error.h"

namespace zinc_rt {

Result<std::vector<std::int32_t>> draft_vocabulary(const Weights& weights, std::size_t n_vocab) {
  constexpr std::string_view kTensor = "d2t";
  std::vector<std::int32_t> tokens;
  const Tensor* tensor = weights.find(kTensor);
  if (tensor == nullptr) return tokens;
  const auto wrong = [&](const std::string& what) {
    return fail({StatusCode::kCorrupt, "draft_model"}, "[draft_model] {}: tensor \"{}\" {}", weights.path(), kTensor,
                what);
  };
  if (tensor->dtype != DType::kI64 || tensor->n_rows() != 1)
    return wrong(
        fmt::format("has type {} and {} rows, i64 and 1 row wanted", to_string(tensor->dtype), tensor->n_rows()));
  std::vector<bool> is_there(n_vocab);
  tokens.reserve(tensor->dims[0]);
  for (std::uint64_t row = 0; row < tensor->dims[0]; ++row) {
    std::int64_t id = 0;
    std::memcpy(&id, tensor->data.data() + row * sizeof(id), sizeof(id));
    if (id < 0 || static_cast<std::uint64_t>(id) >= n_vocab)
      return wrong(fmt::format("has token {} in row {}, the vocabulary has {}", id, row, n_vocab));
    if (is_there[static_cast<std::size_t>(id)])
      return wrong(fmt::format("has token {} twice, the second time in row {}", id, row));
    is_there[static_cast<std::size_t>(id)] = true;
    tokens.push_back(static_cast<std::int32_t>(id));
  }
  return tokens;
}

}  // namespace zinc_rt
