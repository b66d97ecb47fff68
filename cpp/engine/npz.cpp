// The format of the file: A zip archive ends with a record that holds the position of the member list. Each entry of
// the list holds the position of the member's own header, and the data follow that header. A .npy file consists of
// "\\x93NUMPY", a version, the header's length, the header (a Python dictionary as text) and the values.
#include "engine/npz.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace zinc_rt {
namespace {

static_assert(std::endian::native == std::endian::little);

using Bytes = std::span<const std::byte>;

// Returns the number at an offset. REQUIRES: all of its bytes lie in the file.
template <class T>
T read(Bytes bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

constexpr std::uint32_t kEnd = 0x06054b50, kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30;

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

float from_half(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const auto fraction = static_cast<float>(half & 1023);
  const float value = exponent == 31  ? (fraction > 0 ? NAN : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -value : value;
}

// Returns the value of a key in a header such as {'descr': '<f4', 'fortran_order': False, 'shape': (7, 448), }
std::string_view header_value(std::string_view header, std::string_view key, std::string_view open, char close) {
  const std::size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = header.find(open, at + key.size());
  if (begin == std::string_view::npos) return {};
  const std::size_t end = header.find(close, begin + open.size());
  return end == std::string_view::npos ? std::string_view{}
                                       : header.substr(begin + open.size(), end - begin - open.size());
}

}  // namespace

Result<Npz> Npz::open(const std::string& path) {
  Npz npz;
  ZRT_TRY(npz.file_, MappedFile::open(path));
  const Bytes bytes = npz.file_.bytes();
  const auto broken = [&](std::string_view what) {
    return fail(StatusCode::kCorrupt, "[npz] {}: {}; a file of numpy.savez is wanted", path, what);
  };
  // A comment of at most 64 KiB may follow the end record, so the record is searched from the end of the file.
  std::size_t end = bytes.size();
  for (std::size_t back = kEndBytes; back <= bytes.size() && back < kEndBytes + 65536; ++back)
    if (read<std::uint32_t>(bytes, bytes.size() - back) == kEnd) {
      end = bytes.size() - back;
      break;
    }
  if (end == bytes.size()) return broken("no zip archive");
  const std::size_t n = read<std::uint16_t>(bytes, end + 10);
  std::size_t at = read<std::uint32_t>(bytes, end + 16);
  if (n == 0xffff || at == 0xffffffff) return broken("an archive of over 65534 members or 4 GiB");
  for (std::size_t i = 0; i < n; ++i) {
    if (at > end || end - at < kEntryBytes || read<std::uint32_t>(bytes, at) != kEntry)
      return broken(fmt::format("member {} of {} is not listed where it should be", i, n));
    const std::size_t name_bytes = read<std::uint16_t>(bytes, at + 28);
    const std::size_t after = name_bytes + read<std::uint16_t>(bytes, at + 30) + read<std::uint16_t>(bytes, at + 32);
    if (end - at - kEntryBytes < after) return broken(fmt::format("the entry of member {} is cut", i));
    std::string_view name = text_of(bytes.subspan(at + kEntryBytes, name_bytes));
    if (name.ends_with(".npy")) name.remove_suffix(4);
    npz.members_[std::string(name)] = {read<std::uint16_t>(bytes, at + 10), read<std::uint32_t>(bytes, at + 42),
                                       read<std::uint32_t>(bytes, at + 20)};
    at += kEntryBytes + after;
  }
  return npz;
}

Result<Npz::Npy> Npz::member(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) {
    std::string names;
    for (const auto& [known, _] : members_) names += (names.empty() ? "" : ", ") + known;
    return fail(StatusCode::kNotFound, "[npz] {} has no array \"{}\"; it has: {}", file_.path(), name, names);
  }
  const Member& m = found->second;
  if (m.method != 0)
    return fail(StatusCode::kInvalidArgument,
                "[npz] {}: array \"{}\" is compressed (method {}); store it with numpy.savez instead of "
                "numpy.savez_compressed",
                file_.path(), name, m.method);
  const auto broken = [&](std::string_view what) {
    return fail(StatusCode::kCorrupt, "[npz] {}: array \"{}\": {}", file_.path(), name, what);
  };
  const Bytes bytes = file_.bytes();
  if (m.header > bytes.size() || bytes.size() - m.header < kLocalBytes ||
      read<std::uint32_t>(bytes, m.header) != kLocal)
    return broken("its header is not where the archive says");
  const std::uint64_t begin =
      m.header + kLocalBytes + read<std::uint16_t>(bytes, m.header + 26) + read<std::uint16_t>(bytes, m.header + 28);
  if (begin > bytes.size() || bytes.size() - begin < m.bytes) return broken("the file ends within it");
  const Bytes npy = bytes.subspan(begin, m.bytes);
  if (npy.size() < 12 || text_of(npy.first(6)) != "\x93NUMPY") return broken("it is no .npy file");
  const bool long_header = read<std::uint8_t>(npy, 6) > 1;
  const std::size_t start = long_header ? 12 : 10;
  const std::size_t header_bytes = long_header ? read<std::uint32_t>(npy, 8) : read<std::uint16_t>(npy, 8);
  if (npy.size() - start < header_bytes) return broken("its .npy header is cut");
  const std::string_view header = text_of(npy.subspan(start, header_bytes));
  Npy out;
  out.type = header_value(header, "'descr'", ": '", '\'');
  if (header_value(header, "'fortran_order'", ": ", ',') != "False")
    return fail(StatusCode::kInvalidArgument,
                "[npz] {}: array \"{}\" is in Fortran order; store numpy.ascontiguousarray of it", file_.path(), name);
  std::string_view shape = header_value(header, "'shape'", ": (", ')');
  while (!shape.empty()) {
    std::uint64_t extent = 0;
    const auto [rest, error] = std::from_chars(shape.data(), shape.data() + shape.size(), extent);
    if (error != std::errc{} || __builtin_mul_overflow(out.n_values, extent, &out.n_values))
      return broken("its shape is no list of sizes");
    out.shape.push_back(extent);
    shape.remove_prefix(static_cast<std::size_t>(rest - shape.data()));
    while (!shape.empty() && (shape[0] == ',' || shape[0] == ' ')) shape.remove_prefix(1);
  }
  out.data = npy.subspan(start + header_bytes);
  // The last digit of each supported type, such as <f4, is its size in bytes.
  const std::uint64_t width = out.type.empty() ? 0 : static_cast<std::uint64_t>(out.type.back() - '0');
  if (width <= 8 && out.data.size() / std::max<std::uint64_t>(width, 1) < out.n_values)
    return broken(fmt::format("needs {} values of {} bytes, {} bytes there", out.n_values, width, out.data.size()));
  return out;
}

Result<NpyArray<float>> Npz::floats(const std::string& name) const {
  ZRT_TRY(const auto npy, member(name));
  NpyArray<float> out{npy.shape, {}};
  const auto fill = [&]<class T>(T, auto convert) {
    out.values.resize(npy.n_values);
    for (std::size_t i = 0; i < npy.n_values; ++i) out.values[i] = convert(read<T>(npy.data, i * sizeof(T)));
  };
  if (npy.type == "<f4")
    fill(float{}, [](float v) { return v; });
  else if (npy.type == "<f8")
    fill(double{}, [](double v) { return static_cast<float>(v); });
  else if (npy.type == "<f2")
    fill(std::uint16_t{}, from_half);
  else
    return fail(StatusCode::kInvalidArgument, "[npz] {}: array \"{}\" has type {}; float16, float32 or float64 wanted",
                file_.path(), name, npy.type);
  ZRT_CHECK_OK(file_.is_whole());
  return out;
}

Result<NpyArray<std::int64_t>> Npz::integers(const std::string& name) const {
  ZRT_TRY(const auto npy, member(name));
  NpyArray<std::int64_t> out{npy.shape, {}};
  if (npy.type != "<i4" && npy.type != "<i8")
    return fail(StatusCode::kInvalidArgument, "[npz] {}: array \"{}\" has type {}; int32 or int64 wanted", file_.path(),
                name, npy.type);
  for (std::size_t i = 0; i < npy.n_values; ++i)
    out.values.push_back(npy.type == "<i4" ? read<std::int32_t>(npy.data, i * 4) : read<std::int64_t>(npy.data, i * 8));
  ZRT_CHECK_OK(file_.is_whole());
  return out;
}

}  // namespace zinc_rt
