#include "model/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "model/fixed16.h"
#include "model/mlc/reader.h"

namespace zinc_rt {

Result<gguf::Metadata> Weights::open_metadata(const std::string& path) {
  if (mlc::is_folder(path)) return mlc::read_metadata(path);
  ZRT_TRY(gguf::GgufFile file, gguf::GgufFile::open(path));
  return file.take_metadata();
}

Result<Weights> Weights::open(const std::string& path) {
  if (mlc::is_folder(path)) {
    ZRT_TRY(Source source, mlc::read_folder(path));
    return Weights(std::move(source));
  }
  ZRT_TRY(gguf::GgufFile file, gguf::GgufFile::open(path));
  return Weights(std::move(file));
}

Weights::Weights(Source source)
    : path_(std::move(source.path)),
      file_bytes_(source.file_bytes),
      metadata_(std::move(source.metadata)),
      infos_(std::move(source.infos)),
      owner_(std::move(source.owner)),
      is_mapped_(source.is_mapped),
      is_whole_(std::move(source.is_whole)),
      n_own_(infos_.size()) {
  tensors_.reserve(infos_.size());
  for (std::size_t i = 0; i < infos_.size(); ++i) {
    const gguf::TensorInfo& info = infos_[i];
    tensors_.push_back({info.name, info.dtype, info.n_dims, info.dims, source.data[i], info.dtype});
    index_.emplace(info.name, i);
  }
}

namespace {

Weights::Source source_of(gguf::GgufFile opened) {
  auto file = std::make_shared<gguf::GgufFile>(std::move(opened));
  Weights::Source source{.path = file->path(),
                         .file_bytes = file->file_bytes(),
                         .metadata = file->take_metadata(),
                         .infos = {file->tensors().begin(), file->tensors().end()},
                         .data = {},
                         .owner = file,
                         .is_mapped = true,
                         .is_whole = [read = file.get()] { return read->is_whole(); }};
  for (const gguf::TensorInfo& info : source.infos) source.data.push_back(file->data(info));
  return source;
}

}  // namespace

Weights::Weights(gguf::GgufFile file) : Weights(source_of(std::move(file))) {}

void Weights::borrow(std::shared_ptr<const Weights> lender, std::span<const Loan> loans) {
  lender_ = std::move(lender);
  std::vector<Loan> lent;
  for (const Loan& loan : loans)
    if (find(loan.as) == nullptr && lender_->find(loan.tensor) != nullptr) lent.push_back(loan);
  // The names move with infos_, so index_ is made anew.
  index_.clear();
  for (const Loan& loan : lent) {
    infos_.push_back(*std::ranges::find(lender_->infos_, loan.tensor, &gguf::TensorInfo::name));
    infos_.back().name = loan.as;
    tensors_.push_back(*lender_->find(loan.tensor));
  }
  for (std::size_t i = 0; i < infos_.size(); ++i) {
    tensors_[i].name = infos_[i].name;
    index_.emplace(infos_[i].name, i);
  }
}

Status Weights::is_whole() const {
  if (is_whole_) ZRT_CHECK_OK(is_whole_());
  return lender_ != nullptr ? lender_->is_whole() : Status{};
}

void Weights::use_fixed16() {
  for (Tensor& tensor : tensors_)
    if (fits_fixed16(tensor)) tensor.dtype = DType::kFixed16;
}

void Weights::copy_rows(const Tensor& tensor, std::uint64_t first, std::uint64_t n, std::byte* to,
                        unsigned n_threads) const {
  constexpr std::uint64_t kFewestBytes = 1 << 20;  // least work per thread; starting a thread for less does not pay
  const std::uint64_t k = tensor.dims[0], stored = row_bytes(tensor.stored, k), made = row_bytes(tensor.dtype, k);
  const std::byte* from = tensor.data.data() + first * stored;
  const auto copy = [&](std::uint64_t begin, std::uint64_t end) {
    if (tensor.dtype == tensor.stored)
      std::memcpy(to + begin * made, from + begin * stored, (end - begin) * made);
    else
      to_fixed16(tensor.stored, from + begin * stored, (end - begin) * k, to + begin * made);
  };
  const std::uint64_t parts = std::clamp<std::uint64_t>(n * stored / kFewestBytes, 1, std::max(n_threads, 1u));
  std::vector<std::jthread> threads;
  for (std::uint64_t i = 1; i < parts; ++i) threads.emplace_back(copy, n * i / parts, n * (i + 1) / parts);
  copy(0, n / parts);
}

void Weights::release(const Tensor& tensor) const {
  const auto i = index_.find(tensor.name);
  if (i != index_.end() && i->second >= n_own_) return lender_->release(tensor);
  if (is_mapped_) release_pages(tensor.data);
}

const Tensor* Weights::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

Result<const Tensor*> Weights::require(std::string_view name, std::initializer_list<std::uint64_t> dims) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr)
    return fail(StatusCode::kNotFound, "[weights] {}: tensor {}: needs [{}], not there", path_, gguf::quoted(name),
                fmt::join(dims, ", "));
  std::array<std::uint64_t, 4> wanted{1, 1, 1, 1};
  const bool fits = dims.size() <= wanted.size();
  if (fits) std::ranges::copy(dims, wanted.begin());
  if (!fits || wanted != tensor->dims)
    return fail(StatusCode::kCorrupt, "[weights] {}: tensor {}: needs [{}], [{}] there", path_, gguf::quoted(name),
                fmt::join(dims, ", "), fmt::join(std::span(tensor->dims).first(tensor->n_dims), ", "));
  return tensor;
}

std::uint64_t Weights::total_bytes() const {
  std::uint64_t sum = 0;
  for (const Tensor& tensor : tensors_) sum += tensor.data.size();
  return sum;
}

namespace {

using BytesByType = std::vector<std::pair<DType, std::uint64_t>>;

BytesByType sum_by_type(std::span<const Tensor> tensors, DType Tensor::* type, auto&& bytes_of) {
  std::array<std::uint64_t, static_cast<std::size_t>(DType::kCount)> sums{};
  for (const Tensor& tensor : tensors) sums[static_cast<std::size_t>(tensor.*type)] += bytes_of(tensor);
  BytesByType out;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != 0) out.emplace_back(static_cast<DType>(i), sums[i]);
  return out;
}

}  // namespace

BytesByType Weights::bytes_by_dtype() const {
  return sum_by_type(tensors_, &Tensor::stored, [](const Tensor& tensor) { return tensor.data.size(); });
}

BytesByType Weights::computed_bytes_by_dtype() const {
  return sum_by_type(tensors_, &Tensor::dtype, [](const Tensor& tensor) { return tensor.computed_bytes(); });
}

}  // namespace zinc_rt
