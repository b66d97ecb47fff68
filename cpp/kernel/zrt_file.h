// The .zrt kernel container (docs/abi.md), little endian:
//   0   4  magic 0x005A5254, bytes "TRZ\0"                36  4  workgroup_size_z
//   4   2  abi_version = 1                               40  4  lds_bytes
//   6   2  gpu_target                                    44  4  vgpr_count
//   8   4  code_size                                     48  4  sgpr_count
//   12  4  entry_offset (within the code)                52  4  occupancy_hint
//   16  4  buffer_count                                  56  4  name_offset (from the start of the file)
//   20  4  push_const_bytes                              60  4  name_size
//   24  4  subgroup_size                                 64     code, then the name block, then debug info
//   28  4  workgroup_size_x
//   32  4  workgroup_size_y
// The name block holds the kernel's name and its specialization symbols: a string ended by 0, then for each symbol
// its name ended by 0 and a u32 offset into the code (unaligned). At each symbol's offset the code holds a 4-byte
// placeholder, kPlaceholder until it is patched; a symbol may be listed several times, with different offsets. Thread
// rule: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::kernel {

inline constexpr std::uint32_t kZrtMagic = 0x005A5254;
inline constexpr std::uint16_t kZrtAbiVersion = 1;
inline constexpr std::uint32_t kPlaceholder = 0xCAFEBABE;
inline constexpr std::size_t kZrtHeaderBytes = 64;

enum class Target : std::uint16_t {
  kGfx1201 = 1,
  kGfx1200 = 2,
  kGfx1151 = 3,
  kGfx1100 = 4,
  kXe2hpg = 0x10,
  kSm90 = 0x20,
  kAppleMetal = 0x30,
  kCpu = 0xFF
};
std::string_view to_string(Target target);  // "gfx1201", "cpu"; "?" for an unknown number

struct Symbol {
  std::string name;
  std::uint32_t code_offset = 0;  // offset in the code of the 4-byte value that is patched
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

struct ZrtFile {
  Target target = Target::kCpu;
  std::uint32_t entry_offset = 0;
  std::uint32_t buffer_count = 0;
  std::uint32_t push_const_bytes = 0;
  std::uint32_t subgroup_size = 0;
  std::uint32_t workgroup_size[3] = {1, 1, 1};
  std::uint32_t lds_bytes = 0;
  std::uint32_t vgpr_count = 0;
  std::uint32_t sgpr_count = 0;
  std::uint32_t occupancy_hint = 0;
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<std::byte> code;
  std::vector<std::byte> debug_info;
  friend bool operator==(const ZrtFile&, const ZrtFile&) = default;

  // Writes `value` into every slot of the symbol. Errors: kNotFound if the kernel has no symbol of that name.
  Status patch(std::string_view symbol, std::uint32_t value);
  // Returns the first symbol whose slot still holds the placeholder; empty if all are patched.
  std::string_view unpatched() const;
};

std::vector<std::byte> write_zrt(const ZrtFile& file);
// Checks every field against the buffer and the ABI's limits; errors are kCorrupt with field and both numbers.
Result<ZrtFile> read_zrt(std::span<const std::byte> bytes);

}  // namespace zinc_rt::kernel
