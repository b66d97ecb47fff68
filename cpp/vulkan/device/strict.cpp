#include "vulkan/device/strict.h"

#include <set>

namespace zinc_rt::vulkan {
namespace {

// Opcodes and other numbers from the SPIR-V specification.
enum Op : std::uint32_t {
  kOpSourceContinued = 2,
  kOpSource = 3,
  kOpString = 7,
  kOpLine = 8,
  kOpExtension = 10,
  kOpExtInstImport = 11,
  kOpExtInst = 12,
  kOpMemoryModel = 14,
  kOpEntryPoint = 15,
  kOpExecutionMode = 16,
  kOpCapability = 17,
  kOpDecorate = 71,
  kOpConvertSToF = 111,
  kOpConvertUToF = 112,
  kOpFConvert = 115,
  kOpFNegate = 127,
  kOpFAdd = 129,
  kOpFSub = 131,
  kOpFMul = 133,
  kOpFDiv = 136,
  kOpFRem = 140,
  kOpFMod = 141,
  kOpVectorTimesScalar = 142,
  kOpDot = 148,
  kOpModuleProcessed = 330,
  kOpExecutionModeId = 331,
};
constexpr std::uint32_t kNoContraction = 42, kHeaderWords = 5, kFloatBits = 32;
struct Mode {
  bool Strictness::* wanted;
  std::uint32_t capability, mode;
};
constexpr Mode kModes[] = {{&Strictness::keep_denormals, 4464, 4459},
                           {&Strictness::keep_inf_nan_zero, 4466, 4461},
                           {&Strictness::round_to_even, 4467, 4462}};

bool is_arithmetic(std::uint32_t op) {
  switch (op) {
    case kOpExtInst:
    case kOpConvertSToF:
    case kOpConvertUToF:
    case kOpFConvert:
    case kOpFNegate:
    case kOpFAdd:
    case kOpFSub:
    case kOpFMul:
    case kOpFDiv:
    case kOpFRem:
    case kOpFMod:
    case kOpVectorTimesScalar:
    case kOpDot: return true;
    default: return false;
  }
}
// Returns the section of a module to which an instruction belongs. The sections are, in order: 0 capabilities; 1
// extensions to execution modes; 2 names and sources; 3 decorations and everything after them.
int section_of(std::uint32_t op) {
  if (op == kOpCapability) return 0;
  if (op == kOpExtension || op == kOpExtInstImport || (op >= kOpMemoryModel && op <= kOpExecutionMode) ||
      op == kOpExecutionModeId)
    return 1;
  if ((op >= kOpSourceContinued && op <= kOpLine) || op == kOpModuleProcessed) return 2;
  return 3;
}

}  // namespace

std::vector<std::uint32_t> strict(std::span<const std::uint32_t> in, const Strictness& wanted) {
  const auto op = [&](std::size_t at) { return in[at] & 0xFFFFu; };
  const auto length = [&](std::size_t at) { return in[at] >> 16; };
  const auto word = [](std::uint32_t n_words, std::uint32_t code) { return n_words << 16 | code; };
  std::vector<std::uint32_t> results;
  std::set<std::uint32_t> capabilities, modes, decorated;
  std::uint32_t entry = 0;
  for (std::size_t i = kHeaderWords; i < in.size(); i += length(i)) {
    if (op(i) == kOpCapability) capabilities.insert(in[i + 1]);
    if (op(i) == kOpExecutionMode) modes.insert(in[i + 2]);
    if (op(i) == kOpEntryPoint) entry = in[i + 2];
    if (op(i) == kOpDecorate && in[i + 2] == kNoContraction) decorated.insert(in[i + 1]);
    if (is_arithmetic(op(i))) results.push_back(in[i + 2]);
  }
  std::vector<std::uint32_t> out(in.begin(), in.begin() + kHeaderWords);
  int section = 0;
  for (std::size_t i = kHeaderWords; i < in.size(); i += length(i)) {
    // Before the first instruction of a section, this writes what is to be added to the sections before it.
    for (; section < section_of(op(i)); ++section) {
      if (section == 0)
        for (const Mode& m : kModes)
          if (wanted.*m.wanted && !capabilities.contains(m.capability))
            out.insert(out.end(), {word(2, kOpCapability), m.capability});
      if (section == 1)
        for (const Mode& m : kModes)
          if (wanted.*m.wanted && !modes.contains(m.mode))
            out.insert(out.end(), {word(4, kOpExecutionMode), entry, m.mode, kFloatBits});
      if (section == 2)
        for (const std::uint32_t id : results)
          if (!decorated.contains(id)) out.insert(out.end(), {word(3, kOpDecorate), id, kNoContraction});
    }
    out.insert(out.end(), in.begin() + static_cast<std::ptrdiff_t>(i),
               in.begin() + static_cast<std::ptrdiff_t>(i + length(i)));
  }
  return out;
}

}  // namespace zinc_rt::vulkan
