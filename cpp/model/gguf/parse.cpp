// Parses the header of one GGUF file: magic, counts, key-value section, tensor table. The file is not trusted. Before
// memory is allocated for a count, the count is compared with the bytes that are left, and with a fixed limit well
// above every real model.
#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_set>

#include "base/error.h"
#include "model/gguf/cursor.h"
#include "model/gguf/reader.h"

namespace zinc_rt::gguf {
namespace {

constexpr std::uint64_t kMaxKeys = 1U << 16;
constexpr std::uint64_t kMaxTensors = 1U << 20;
constexpr std::uint64_t kMaxArrayElements = 1U << 23;  // most elements of all arrays of a file together
constexpr std::uint64_t kMaxKeyBytes = 65535;
constexpr std::uint64_t kMaxTensorNameBytes = 64;
constexpr std::uint64_t kMaxStringBytes = 1U << 26;
constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;  // 8-byte length, one byte of key, type, one byte of value
// length, one byte of name, n_dims, one dim, type, offset
constexpr std::uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
// With an alignment below 8, a tensor's floats could lie unaligned in memory. Above 1 MiB, more alignment only adds
// padding.
constexpr std::int64_t kMinAlignment = 8;
constexpr std::int64_t kMaxAlignment = 1 << 20;

// Returns how many bytes a value takes in the file. For a string this is the smallest possible size. Returns 0 for an
// unknown type.
std::uint64_t min_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool: return 1;
    case ValueType::kU16:
    case ValueType::kI16: return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32: return 4;
    case ValueType::kString:
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64: return 8;
    case ValueType::kArray: return 12;
  }
  return 0;
}

// Calls use(T{}, Held{}), where T is the C++ type of the number in the file and Held is the type in which Value stores
// it.
template <class F>
Status with_number_type(ValueType type, F use) {
  switch (type) {
    case ValueType::kU8: return use(std::uint8_t{}, std::int64_t{});
    case ValueType::kI8: return use(std::int8_t{}, std::int64_t{});
    case ValueType::kU16: return use(std::uint16_t{}, std::int64_t{});
    case ValueType::kI16: return use(std::int16_t{}, std::int64_t{});
    case ValueType::kU32: return use(std::uint32_t{}, std::int64_t{});
    case ValueType::kI32: return use(std::int32_t{}, std::int64_t{});
    case ValueType::kI64: return use(std::int64_t{}, std::int64_t{});
    case ValueType::kU64: return use(std::uint64_t{}, std::uint64_t{});
    case ValueType::kF32: return use(float{}, double{});
    default: return use(double{}, double{});
  }
}

Status read_bool(Cursor& in, std::uint8_t& out) {
  ZRT_CHECK_OK(in.read(out));
  if (out <= 1) return {};
  return fail(StatusCode::kCorrupt, "[gguf] {}: {}: a bool is 0 or 1, {} there", in.place(), in.where(), out);
}

Status read_scalar(Cursor& in, Value& value) {
  if (value.type == ValueType::kString) return in.read_string(value.data.emplace<std::string>(), kMaxStringBytes);
  if (value.type == ValueType::kBool) {
    std::uint8_t byte = 0;
    ZRT_CHECK_OK(read_bool(in, byte));
    value.data = byte != 0;
    return {};
  }
  return with_number_type(value.type, [&]<class T, class Held>(T number, Held) -> Status {
    ZRT_CHECK_OK(in.read(number));
    value.data = static_cast<Held>(number);
    return {};
  });
}

Status read_elements(Cursor& in, Value& value, std::uint64_t count) {
  if (value.type == ValueType::kString) {
    auto& strings = value.data.emplace<std::vector<std::string>>(count);
    for (auto& text : strings) ZRT_CHECK_OK(in.read_string(text, kMaxStringBytes));
    return {};
  }
  if (value.type == ValueType::kBool) {
    auto& bools = value.data.emplace<std::vector<std::uint8_t>>(count);
    for (auto& byte : bools) ZRT_CHECK_OK(read_bool(in, byte));
    return {};
  }
  return with_number_type(value.type, [&]<class T, class Held>(T number, Held) -> Status {
    auto& numbers = value.data.emplace<std::vector<Held>>(count);
    for (auto& held : numbers) {
      ZRT_CHECK_OK(in.read(number));
      held = static_cast<Held>(number);
    }
    return {};
  });
}

Result<ValueType> read_type(Cursor& in) {
  std::uint32_t number = 0;
  ZRT_CHECK_OK(in.read(number));
  const auto type = static_cast<ValueType>(number);
  if (min_bytes(type) == 0)
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: value type {}, the last known is {}", in.place(), in.where(),
                number, static_cast<std::uint32_t>(ValueType::kF64));
  return type;
}

Status read_value(Cursor& in, Value& value, std::uint64_t& elements_left) {
  ZRT_TRY(value.type, read_type(in));
  if (value.type != ValueType::kArray) return read_scalar(in, value);

  value.is_array = true;
  ZRT_TRY(value.type, read_type(in));
  if (value.type == ValueType::kArray)
    return fail(StatusCode::kUnavailable, "[gguf] {}: {}: an array of arrays is not supported", in.place(), in.where());
  std::uint64_t count = 0;
  ZRT_CHECK_OK(in.read(count));
  if (count > in.remaining() / min_bytes(value.type))
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: {} with {} elements of at least {} bytes, {} bytes left",
                in.place(), in.where(), value.type_name(), count, min_bytes(value.type), in.remaining());
  if (count > elements_left)
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: {} with {} elements, {} left of the {} that a file may have",
                in.place(), in.where(), value.type_name(), count, elements_left, kMaxArrayElements);
  elements_left -= count;
  return read_elements(in, value, count);
}

Status check_count(const Cursor& in, std::string_view what, std::uint64_t count, std::uint64_t limit,
                   std::uint64_t entry_bytes) {
  if (count > limit)
    return fail(StatusCode::kCorrupt, "[gguf] {}: {} {}, at most {} allowed", in.place(), count, what, limit);
  if (count > in.remaining() / entry_bytes)
    return fail(StatusCode::kCorrupt, "[gguf] {}: {} {} need at least {} bytes, {} there", in.place(), count, what,
                count * entry_bytes, in.remaining());
  return {};
}

Status read_magic_and_version(Cursor& in, std::uint32_t& version) {
  in.set_where("header");
  std::uint32_t magic = 0;
  ZRT_CHECK_OK(in.read(magic));
  constexpr std::uint32_t kMagic = 0x46554747;  // the bytes "GGUF", read as a little-endian number
  if (magic != kMagic)
    return fail(StatusCode::kCorrupt, "[gguf] {}: not a GGUF file: magic {:#010x} needed, {:#010x} there", in.place(),
                kMagic, magic);
  ZRT_CHECK_OK(in.read(version));
  if ((version & 0xffffU) == 0 && version != 0)
    return fail(StatusCode::kUnavailable,
                "[gguf] {}: big-endian file (version bytes {:#010x}); only little endian is supported: convert it",
                in.place(), version);
  if (version != 2 && version != 3)
    return fail(StatusCode::kUnavailable, "[gguf] {}: version 2 or 3 needed, version {} there{}", in.place(), version,
                version == 1 ? ": convert the file with a current converter" : "");
  return {};
}

Status read_metadata(Cursor& in, std::uint64_t n_keys, Metadata& metadata) {
  std::uint64_t elements_left = kMaxArrayElements;
  for (std::uint64_t i = 0; i < n_keys; ++i) {
    in.set_where(fmt::format("key {} of {}", i, n_keys));
    std::string key;
    ZRT_CHECK_OK(in.read_string(key, kMaxKeyBytes));
    if (key.empty()) return fail(StatusCode::kCorrupt, "[gguf] {}: {}: the name is empty", in.place(), in.where());
    in.set_where(fmt::format("key {}", quoted(key)));
    Value value;
    ZRT_CHECK_OK(read_value(in, value, elements_left));
    ZRT_CHECK_OK(metadata.add(std::move(key), std::move(value)));
  }
  return {};
}

Result<std::uint64_t> alignment_of(const Metadata& metadata, std::string_view place) {
  ZRT_TRY(const std::int64_t alignment, metadata.get_int_or("general.alignment", 32));
  if (alignment < kMinAlignment || alignment > kMaxAlignment ||
      !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    return fail(StatusCode::kCorrupt, "[gguf] {}: key \"general.alignment\": needs a power of two in {}..{}, {} there",
                place, kMinAlignment, kMaxAlignment, alignment);
  return static_cast<std::uint64_t>(alignment);
}

// Sets tensor.n_bytes, computed from its dims and dtype. Errors: kCorrupt if a row is no whole number of blocks, or the
// tensor has more than 2^48 elements.
Status measure(const Cursor& in, TensorInfo& tensor) {
  const DTypeTraits& row = traits(tensor.dtype);
  if (tensor.dims[0] % row.block_elems != 0)
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: rows of {} need a multiple of {} elements, {} there", in.place(),
                in.where(), row.name, row.block_elems, tensor.dims[0]);
  std::uint64_t n_elements = 1;
  for (const std::uint64_t dim : tensor.dims) {
    // The limit keeps n_elements * block_bytes, and offsets computed from it, within 63 bits.
    constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;
    if (dim > kMaxElements / n_elements)
      return fail(StatusCode::kCorrupt, "[gguf] {}: {}: {} x {} elements, at most {} allowed", in.place(), in.where(),
                  n_elements, dim, kMaxElements);
    n_elements *= dim;
  }
  tensor.n_bytes = row_bytes(tensor.dtype, n_elements);
  return {};
}

Status read_tensor(Cursor& in, TensorInfo& tensor, std::uint64_t alignment) {
  ZRT_CHECK_OK(in.read_string(tensor.name, kMaxTensorNameBytes));
  if (tensor.name.empty())
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: the name is empty", in.place(), in.where());
  in.set_where(fmt::format("tensor {}", quoted(tensor.name)));
  ZRT_CHECK_OK(in.read(tensor.n_dims));
  if (tensor.n_dims < 1 || tensor.n_dims > tensor.dims.size())
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: {} dimensions, 1 to {} allowed", in.place(), in.where(),
                tensor.n_dims, tensor.dims.size());
  for (std::uint32_t d = 0; d < tensor.n_dims; ++d) {
    ZRT_CHECK_OK(in.read(tensor.dims[d]));
    if (tensor.dims[d] == 0)
      return fail(StatusCode::kCorrupt, "[gguf] {}: {}: dimension {} needs at least 1, 0 there", in.place(), in.where(),
                  d);
  }
  std::uint32_t number = 0;
  ZRT_CHECK_OK(in.read(number));
  const FileTensorType* type = find_tensor_type(number);
  if (type == nullptr)
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: unknown tensor type {}", in.place(), in.where(), number);
  if (!type->dtype)
    return fail(StatusCode::kUnavailable, "[gguf] {}: {}: tensor type {} ({}) is not supported", in.place(), in.where(),
                number, type->name);
  tensor.dtype = *type->dtype;
  ZRT_CHECK_OK(in.read(tensor.offset));
  if (tensor.offset % alignment != 0)
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: offset needs a multiple of {}, {} there", in.place(), in.where(),
                alignment, tensor.offset);
  return measure(in, tensor);
}

Status read_tensors(Cursor& in, std::uint64_t n_tensors, ParsedFile& file) {
  std::unordered_set<std::string> names;
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    in.set_where(fmt::format("tensor {} of {}", i, n_tensors));
    TensorInfo tensor;
    ZRT_CHECK_OK(read_tensor(in, tensor, file.alignment));
    if (!names.insert(tensor.name).second)
      return fail(StatusCode::kCorrupt, "[gguf] {}: {}: entry {} repeats an earlier name", in.place(), in.where(), i);
    file.tensors.push_back(std::move(tensor));
  }
  return {};
}

// Converts each tensor's offset, which counts from the data section, to an offset from the file's start. Errors:
// kCorrupt if a tensor does not lie within the data section or overlaps another.
Status place_tensors(const Cursor& in, ParsedFile& file) {
  if (file.tensors.empty()) return {};
  const std::uint64_t file_bytes = in.pos() + in.remaining();
  const std::uint64_t padding = (file.alignment - in.pos() % file.alignment) % file.alignment;
  const std::uint64_t data_bytes = in.remaining() > padding ? in.remaining() - padding : 0;
  std::vector<const TensorInfo*> by_offset;
  for (TensorInfo& tensor : file.tensors) {
    if (tensor.offset > data_bytes || tensor.n_bytes > data_bytes - tensor.offset)
      return fail(StatusCode::kCorrupt,
                  "[gguf] {}: tensor {}: needs {} bytes at offset {} of the data, {} bytes of data there (file of {} "
                  "bytes, cut short?)",
                  in.place(), quoted(tensor.name), tensor.n_bytes, tensor.offset, data_bytes, file_bytes);
    tensor.offset += in.pos() + padding;
    by_offset.push_back(&tensor);
  }
  std::ranges::sort(by_offset, {}, &TensorInfo::offset);
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const TensorInfo& before = *by_offset[i - 1];
    const TensorInfo& tensor = *by_offset[i];
    if (before.offset + before.n_bytes > tensor.offset)
      return fail(StatusCode::kCorrupt, "[gguf] {}: tensor {}: starts at {}, inside tensor {} that ends at {}",
                  in.place(), quoted(tensor.name), tensor.offset, quoted(before.name), before.offset + before.n_bytes);
  }
  return {};
}

}  // namespace

Result<ParsedFile> parse(std::span<const std::byte> bytes, const std::string& place) {
  Cursor in(bytes, place);
  ParsedFile file;
  file.metadata.set_place(place);
  ZRT_CHECK_OK(read_magic_and_version(in, file.version));
  std::uint64_t n_tensors = 0;
  std::uint64_t n_keys = 0;
  ZRT_CHECK_OK(in.read(n_tensors));
  ZRT_CHECK_OK(in.read(n_keys));
  ZRT_CHECK_OK(check_count(in, "keys", n_keys, kMaxKeys, kMinKeyBytes));
  ZRT_CHECK_OK(check_count(in, "tensors", n_tensors, kMaxTensors, kMinTensorBytes));
  ZRT_CHECK_OK(read_metadata(in, n_keys, file.metadata));
  ZRT_TRY(file.alignment, alignment_of(file.metadata, place));
  ZRT_CHECK_OK(check_count(in, "tensors", n_tensors, kMaxTensors, kMinTensorBytes));
  ZRT_CHECK_OK(read_tensors(in, n_tensors, file));
  ZRT_CHECK_OK(place_tensors(in, file));
  return file;
}

}  // namespace zinc_rt::gguf
