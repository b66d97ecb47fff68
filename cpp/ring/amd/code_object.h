// Reads an AMDGPU code object, the ELF file that the compiler produces. The result is its memory image, and its kernels
// with the register values that their dispatch needs.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::ring {

struct KernelCode {
  std::string name;
  std::uint64_t entry = 0;  // offset of the first instruction in the image
  std::uint32_t lds_bytes = 0, argument_bytes = 0;
  std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  std::uint32_t n_vgprs() const { return ((rsrc1 & 63) + 1) * 8; }
};

struct CodeObject {
  // The alignment is kCodeAlign. The image is 256 bytes longer than the code, because the device fetches ahead.
  std::vector<std::byte> image;
  std::vector<KernelCode> kernels;
};
inline constexpr std::uint64_t kCodeAlign = 4096;

// Reads a code object. Errors: kCorrupt for a file that is not a code object or is cut short. kUnavailable for a kernel
// that needs what the tiers do not provide: relocations, private memory per lane, 64 lanes, or arguments other than one
// pointer. `name` appears in error messages.
Result<CodeObject> read_code_object(std::span<const std::byte> elf, std::string_view name);

}  // namespace zinc_rt::ring
