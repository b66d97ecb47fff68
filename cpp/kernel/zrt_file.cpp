#include "kernel/zrt_file.h"

#include <bit>
#include <cstring>

#include "base/error.h"

namespace zinc_rt::kernel {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little endian");

struct Header {
  std::uint32_t magic;
  std::uint16_t abi_version, gpu_target;
  std::uint32_t code_size, entry_offset, buffer_count, push_const_bytes, subgroup_size;
  std::uint32_t workgroup_size[3];
  std::uint32_t lds_bytes, vgpr_count, sgpr_count, occupancy_hint, name_offset, name_size;
};
static_assert(sizeof(Header) == kZrtHeaderBytes);

constexpr std::uint32_t kMaxBuffers = 64;
constexpr std::uint32_t kMaxPushBytes = 4096;
constexpr std::uint32_t kMaxWorkgroup = 1u << 20;

template <class... Args>
std::unexpected<Error> corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return fail(StatusCode::kCorrupt, "[zrt] {}", fmt::format(format, std::forward<Args>(args)...));
}

Status read_names(std::string_view block, std::uint32_t code_size, ZrtFile& file) {
  const auto take = [&]() -> Result<std::string> {
    const auto end = block.find('\0');
    if (end == std::string_view::npos)
      return corrupt("a name does not end within the name block, {} bytes left", block.size());
    std::string text(block.substr(0, end));
    block.remove_prefix(end + 1);
    return text;
  };
  ZRT_TRY(file.name, take());
  while (!block.empty()) {
    Symbol symbol;
    ZRT_TRY(symbol.name, take());
    if (symbol.name.empty()) return corrupt("symbol {} has no name", file.symbols.size());
    if (block.size() < 4) return corrupt("symbol {} needs 4 bytes, {} there", symbol.name, block.size());
    std::memcpy(&symbol.code_offset, block.data(), 4);
    block.remove_prefix(4);
    if (code_size < 4 || symbol.code_offset > code_size - 4)
      return corrupt("symbol {} lies at {} of {} bytes of code", symbol.name, symbol.code_offset, code_size);
    file.symbols.push_back(std::move(symbol));
  }
  return {};
}

}  // namespace

std::string_view to_string(Target target) {
  switch (target) {
    case Target::kGfx1201: return "gfx1201";
    case Target::kGfx1200: return "gfx1200";
    case Target::kGfx1151: return "gfx1151";
    case Target::kGfx1100: return "gfx1100";
    case Target::kXe2hpg: return "xe2hpg";
    case Target::kSm90: return "sm_90";
    case Target::kAppleMetal: return "apple_metal";
    case Target::kCpu: return "cpu";
  }
  return "?";
}

Status ZrtFile::patch(std::string_view symbol, std::uint32_t value) {
  bool found = false;
  for (const Symbol& slot : symbols) {
    if (slot.name != symbol) continue;
    std::memcpy(code.data() + slot.code_offset, &value, 4);
    found = true;
  }
  if (!found) return fail(StatusCode::kNotFound, "[zrt] kernel {} has no symbol {}", name, symbol);
  return {};
}

std::string_view ZrtFile::unpatched() const {
  for (const Symbol& slot : symbols) {
    std::uint32_t value;
    std::memcpy(&value, code.data() + slot.code_offset, 4);
    if (value == kPlaceholder) return slot.name;
  }
  return {};
}

std::vector<std::byte> write_zrt(const ZrtFile& file) {
  std::string names = file.name;
  names.push_back('\0');
  for (const Symbol& symbol : file.symbols) {
    names += symbol.name;
    names.push_back('\0');
    names.append(reinterpret_cast<const char*>(&symbol.code_offset), 4);
  }
  const Header header{kZrtMagic,
                      kZrtAbiVersion,
                      static_cast<std::uint16_t>(file.target),
                      static_cast<std::uint32_t>(file.code.size()),
                      file.entry_offset,
                      file.buffer_count,
                      file.push_const_bytes,
                      file.subgroup_size,
                      {file.workgroup_size[0], file.workgroup_size[1], file.workgroup_size[2]},
                      file.lds_bytes,
                      file.vgpr_count,
                      file.sgpr_count,
                      file.occupancy_hint,
                      static_cast<std::uint32_t>(kZrtHeaderBytes + file.code.size()),
                      static_cast<std::uint32_t>(names.size())};
  std::vector<std::byte> out(sizeof(header) + file.code.size() + names.size() + file.debug_info.size());
  std::byte* at = out.data();
  const auto append = [&](const void* data, std::size_t size) {
    if (size > 0) std::memcpy(at, data, size);
    at += size;
  };
  append(&header, sizeof(header));
  append(file.code.data(), file.code.size());
  append(names.data(), names.size());
  append(file.debug_info.data(), file.debug_info.size());
  return out;
}

Result<ZrtFile> read_zrt(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return corrupt("needs {} bytes of header, {} there", sizeof(header), bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kZrtMagic) return corrupt("magic 0x{:08x}, 0x{:08x} wanted", header.magic, kZrtMagic);
  if (header.abi_version != kZrtAbiVersion)
    return corrupt("abi_version {}, {} wanted", header.abi_version, kZrtAbiVersion);
  ZrtFile file;
  file.target = static_cast<Target>(header.gpu_target);
  if (to_string(file.target) == "?") return corrupt("gpu_target 0x{:x} is unknown", header.gpu_target);
  if (header.code_size > bytes.size() - sizeof(header))
    return corrupt("code_size {}, {} bytes there", header.code_size, bytes.size() - sizeof(header));
  if (header.entry_offset > header.code_size)
    return corrupt("entry_offset {} of {} bytes of code", header.entry_offset, header.code_size);
  if (header.name_offset != sizeof(header) + header.code_size)
    return corrupt("name_offset {}, {} wanted", header.name_offset, sizeof(header) + header.code_size);
  const std::size_t after_code = bytes.size() - header.name_offset;
  if (header.name_size == 0 || header.name_size > after_code)
    return corrupt("name_size {}, {} bytes there", header.name_size, after_code);
  if (header.buffer_count > kMaxBuffers)
    return corrupt("buffer_count {}, at most {}", header.buffer_count, kMaxBuffers);
  if (header.push_const_bytes > kMaxPushBytes || header.push_const_bytes % 4 != 0)
    return corrupt("push_const_bytes {}, a multiple of 4 up to {} wanted", header.push_const_bytes, kMaxPushBytes);
  if (header.subgroup_size != 0 && header.subgroup_size != 32 && header.subgroup_size != 64)
    return corrupt("subgroup_size {}, 0, 32 or 64 wanted", header.subgroup_size);
  for (int i = 0; i < 3; ++i) {
    if (header.workgroup_size[i] == 0 || header.workgroup_size[i] > kMaxWorkgroup)
      return corrupt("workgroup_size {}, 1 to {} wanted", header.workgroup_size[i], kMaxWorkgroup);
    file.workgroup_size[i] = header.workgroup_size[i];
  }
  file.entry_offset = header.entry_offset;
  file.buffer_count = header.buffer_count;
  file.push_const_bytes = header.push_const_bytes;
  file.subgroup_size = header.subgroup_size;
  file.lds_bytes = header.lds_bytes;
  file.vgpr_count = header.vgpr_count;
  file.sgpr_count = header.sgpr_count;
  file.occupancy_hint = header.occupancy_hint;
  const auto* names = reinterpret_cast<const char*>(bytes.data()) + header.name_offset;
  ZRT_CHECK_OK(read_names({names, header.name_size}, header.code_size, file));
  const auto* code = bytes.data() + sizeof(header);
  file.code.assign(code, code + header.code_size);
  const auto* debug = bytes.data() + header.name_offset + header.name_size;
  file.debug_info.assign(debug, bytes.data() + bytes.size());
  return file;
}

}  // namespace zinc_rt::kernel
