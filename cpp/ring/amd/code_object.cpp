#include "ring/amd/code_object.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

// Numbers of the ELF64 format: the machine, section and segment types, and the sizes of table entries and of a kernel
// descriptor.
constexpr std::uint16_t kMachineAmdGpu = 224;
constexpr std::uint32_t kLoad = 1, kRela = 4, kDynSym = 11;
constexpr std::uint64_t kProgramHeaderBytes = 56, kSectionHeaderBytes = 64, kSymbolBytes = 24, kDescriptorBytes = 64;
constexpr std::uint64_t kFetchedAhead = 256, kMostImage = 64u << 20;
constexpr std::uint16_t kArgumentPointer = 1 << 3, kWave32 = 1 << 10;
// Bits of a kernel descriptor with which a kernel requests pointers that these tiers do not pass: dispatch packet,
// queue, dispatch id, scratch.
constexpr std::uint16_t kOtherPointers = 0x77;

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}
  template <class T>
  Result<T> at(std::uint64_t offset) const {
    ZRT_TRY(const auto part, slice(offset, sizeof(T)));
    T value;
    std::memcpy(&value, part.data(), sizeof(T));
    return value;
  }
  Result<std::span<const std::byte>> slice(std::uint64_t offset, std::uint64_t bytes) const {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset)
      return fail(StatusCode::kCorrupt, "[amd] code object {}: {} bytes at {}, it has {}", name_, bytes, offset,
                  bytes_.size());
    return bytes_.subspan(offset, bytes);
  }
  Result<std::string> text(std::uint64_t offset) const {
    ZRT_TRY(const auto rest, slice(offset, bytes_.size() - std::min<std::uint64_t>(offset, bytes_.size())));
    const auto end = std::ranges::find(rest, std::byte{0});
    if (end == rest.end())
      return fail(StatusCode::kCorrupt, "[amd] code object {}: the name at {} has no end", name_, offset);
    return std::string(reinterpret_cast<const char*>(rest.data()), static_cast<std::size_t>(end - rest.begin()));
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
};

// Copies the loadable segments of the file to their addresses in the image.
Status load_image(const Reader& elf, std::string_view name, std::vector<std::byte>& image) {
  ZRT_TRY(const auto table, elf.at<std::uint64_t>(32));
  ZRT_TRY(const auto n, elf.at<std::uint16_t>(56));
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t header = table + kProgramHeaderBytes * i;
    ZRT_TRY(const auto type, elf.at<std::uint32_t>(header));
    if (type != kLoad) continue;
    ZRT_TRY(const auto offset, elf.at<std::uint64_t>(header + 8));
    ZRT_TRY(const auto address, elf.at<std::uint64_t>(header + 16));
    ZRT_TRY(const auto in_file, elf.at<std::uint64_t>(header + 32));
    ZRT_TRY(const auto in_memory, elf.at<std::uint64_t>(header + 40));
    if (address > kMostImage || in_memory > kMostImage || in_file > in_memory)
      return fail(StatusCode::kCorrupt, "[amd] code object {}: a part of {} bytes at {}, {} are allowed", name,
                  in_memory, address, kMostImage);
    ZRT_TRY(const auto bytes, elf.slice(offset, in_file));
    image.resize(std::max<std::uint64_t>(image.size(), address + in_memory + kFetchedAhead));
    std::ranges::copy(bytes, image.begin() + static_cast<std::ptrdiff_t>(address));
  }
  return {};
}

Result<KernelCode> read_descriptor(std::span<const std::byte> image, std::uint64_t at, std::string kernel) {
  const Reader memory(image, kernel);
  ZRT_TRY(const auto bytes, memory.slice(at, kDescriptorBytes));
  const Reader descriptor(bytes, kernel);
  KernelCode code;
  ZRT_TRY(code.lds_bytes, descriptor.at<std::uint32_t>(0));
  ZRT_TRY(const auto private_bytes, descriptor.at<std::uint32_t>(4));
  ZRT_TRY(code.argument_bytes, descriptor.at<std::uint32_t>(8));
  ZRT_TRY(const auto entry, descriptor.at<std::int64_t>(16));
  ZRT_TRY(code.rsrc3, descriptor.at<std::uint32_t>(44));
  ZRT_TRY(code.rsrc1, descriptor.at<std::uint32_t>(48));
  ZRT_TRY(code.rsrc2, descriptor.at<std::uint32_t>(52));
  ZRT_TRY(const auto properties, descriptor.at<std::uint16_t>(56));
  code.entry = at + static_cast<std::uint64_t>(entry);
  if (code.entry >= image.size() || code.entry % 256 != 0)
    return fail(StatusCode::kCorrupt, "[amd] kernel {} begins at {} of {} bytes, a multiple of 256 is wanted", kernel,
                code.entry, image.size());
  if (private_bytes != 0)
    return fail(StatusCode::kUnavailable, "[amd] kernel {} wants {} bytes of scratch a lane, 0 are given", kernel,
                private_bytes);
  if ((properties & kWave32) == 0 || (properties & kArgumentPointer) == 0 || (properties & kOtherPointers) != 0)
    return fail(StatusCode::kUnavailable,
                "[amd] kernel {} has properties {:#x}; 32 lanes and one pointer to its arguments are wanted ({:#x})",
                kernel, properties, kWave32 | kArgumentPointer);
  code.name = std::move(kernel);
  return code;
}

}  // namespace

Result<CodeObject> read_code_object(std::span<const std::byte> bytes, std::string_view name) {
  constexpr std::string_view kMagic = "\177ELF\2\1";
  const Reader elf(bytes, name);
  ZRT_TRY(const auto magic, elf.slice(0, kMagic.size()));
  ZRT_TRY(const auto machine, elf.at<std::uint16_t>(18));
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0 || machine != kMachineAmdGpu)
    return fail(StatusCode::kCorrupt, "[amd] {} is no code object of an AMD GPU: machine {}, {} wanted", name, machine,
                kMachineAmdGpu);
  CodeObject object;
  ZRT_CHECK_OK(load_image(elf, name, object.image));
  ZRT_TRY(const auto sections, elf.at<std::uint64_t>(40));
  ZRT_TRY(const auto n_sections, elf.at<std::uint16_t>(60));
  for (std::uint64_t i = 0; i < n_sections; ++i) {
    const std::uint64_t header = sections + kSectionHeaderBytes * i;
    ZRT_TRY(const auto type, elf.at<std::uint32_t>(header + 4));
    if (type == kRela) return fail(StatusCode::kUnavailable, "[amd] code object {} has relocations", name);
    if (type != kDynSym) continue;
    ZRT_TRY(const auto offset, elf.at<std::uint64_t>(header + 24));
    ZRT_TRY(const auto size, elf.at<std::uint64_t>(header + 32));
    ZRT_TRY(const auto link, elf.at<std::uint32_t>(header + 40));
    ZRT_TRY(const auto names, elf.at<std::uint64_t>(sections + kSectionHeaderBytes * link + 24));
    ZRT_TRY(const auto symbols, elf.slice(offset, size));
    for (std::uint64_t at = offset; at + kSymbolBytes <= offset + symbols.size(); at += kSymbolBytes) {
      ZRT_TRY(const auto name_at, elf.at<std::uint32_t>(at));
      ZRT_TRY(const auto address, elf.at<std::uint64_t>(at + 8));
      ZRT_TRY(auto symbol, elf.text(names + name_at));
      if (!symbol.ends_with(".kd")) continue;
      symbol.resize(symbol.size() - 3);
      ZRT_TRY(auto kernel, read_descriptor(object.image, address, std::move(symbol)));
      object.kernels.push_back(std::move(kernel));
    }
  }
  return object;
}

}  // namespace zinc_rt::ring
