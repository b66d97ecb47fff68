#include "model/gguf/writer.h"

#include <cstring>

#include "base/error.h"
#include "base/output_file.h"
#include "model/gguf/tensor_info.h"

namespace zinc_rt::gguf {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // the bytes "GGUF", read as a little-endian number
constexpr std::uint32_t kVersion = 3;

// Collects the bytes of the header in memory. Tensor data is large, so it is written directly to the file instead.
class Header {
 public:
  template <class T>
  void put(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    bytes_.append(bytes, sizeof(T));
  }
  void put_string(std::string_view text) {
    put(std::uint64_t{text.size()});
    bytes_.append(text);
  }
  void put_type(ValueType type) { put(static_cast<std::uint32_t>(type)); }

  // Appends a number. `held` is the number as Value stores it (i64, u64, double, bool); `type` is its type in the file.
  void put_number(ValueType type, auto held) {
    switch (type) {
      case ValueType::kU8:
      case ValueType::kBool: return put(static_cast<std::uint8_t>(held));
      case ValueType::kI8: return put(static_cast<std::int8_t>(held));
      case ValueType::kU16: return put(static_cast<std::uint16_t>(held));
      case ValueType::kI16: return put(static_cast<std::int16_t>(held));
      case ValueType::kU32: return put(static_cast<std::uint32_t>(held));
      case ValueType::kI32: return put(static_cast<std::int32_t>(held));
      case ValueType::kF32: return put(static_cast<float>(held));
      case ValueType::kU64: return put(static_cast<std::uint64_t>(held));
      case ValueType::kI64: return put(static_cast<std::int64_t>(held));
      case ValueType::kF64: return put(static_cast<double>(held));
      case ValueType::kString:
      case ValueType::kArray: return;  // an array is no number, so there is nothing to write
    }
  }

  void put_value(const Value& value) {
    if (value.is_array) put_type(ValueType::kArray);
    put_type(value.type);
    std::visit([&](const auto& held) { put_held(value.type, held); }, value.data);
  }

  std::string_view bytes() const { return bytes_; }

 private:
  void put_held(ValueType, const std::string& text) { put_string(text); }
  void put_held(ValueType, const std::vector<std::string>& texts) {
    put(std::uint64_t{texts.size()});
    for (const std::string& text : texts) put_string(text);
  }
  template <class T>
  void put_held(ValueType type, const std::vector<T>& numbers) {
    put(std::uint64_t{numbers.size()});
    for (const T number : numbers) put_number(type, number);
  }
  template <class T>
  void put_held(ValueType type, T number) {
    put_number(type, number);
  }

  std::string bytes_;
};

Result<Header> make_header(const Metadata& metadata, std::span<const Tensor> tensors, std::uint64_t alignment) {
  Header header;
  header.put(kMagic);
  header.put(kVersion);
  header.put(std::uint64_t{tensors.size()});
  header.put(std::uint64_t{metadata.entries().size()});
  for (const auto& [key, value] : metadata.entries()) {
    header.put_string(key);
    header.put_value(value);
  }
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    const FileTensorType* type = find_tensor_type(tensor.dtype);
    if (type == nullptr)
      return fail(StatusCode::kInvalidArgument, "[gguf] tensor {}: type {} has no place in a GGUF file",
                  quoted(tensor.name), to_string(tensor.dtype));
    header.put_string(tensor.name);
    header.put(tensor.n_dims);
    for (std::uint32_t d = 0; d < tensor.n_dims; ++d) header.put(tensor.dims[d]);
    header.put(type->number);
    header.put(offset);
    offset = (offset + tensor.data.size() + alignment - 1) / alignment * alignment;
  }
  return header;
}

}  // namespace

Result<std::uint64_t> write_file(const std::string& path, const Metadata& metadata, std::span<const Tensor> tensors,
                                 const WriteOptions& options) {
  ZRT_TRY(const std::int64_t alignment_key, metadata.get_int_or("general.alignment", 32));
  const auto alignment = static_cast<std::uint64_t>(alignment_key);
  if (alignment == 0 || alignment % 8 != 0)
    return fail(StatusCode::kInvalidArgument, "[gguf] {}: key \"general.alignment\": needs a multiple of 8, {} there",
                path, alignment_key);
  ZRT_TRY(const Header header, make_header(metadata, tensors, alignment));
  ZRT_TRY(OutputFile file, OutputFile::create(path));
  ZRT_CHECK_OK(file.write(header.bytes()));
  std::uint64_t done = 0, total = 0;
  for (const Tensor& tensor : tensors) total += tensor.data.size();
  for (const Tensor& tensor : tensors) {
    ZRT_CHECK_OK(file.pad_to(alignment));
    ZRT_CHECK_OK(file.write(tensor.data));
    done += tensor.data.size();
    if (options.on_progress) ZRT_CHECK_OK(options.on_progress(done, total));
  }
  ZRT_CHECK_OK(file.commit());
  return file.n_bytes();
}

}  // namespace zinc_rt::gguf
