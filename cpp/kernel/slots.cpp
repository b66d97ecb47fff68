#include "kernel/slots.h"

#include <cstring>

#include "base/error.h"

namespace zinc_rt::kernel {

ZrtFile with_slots(const ir::OpRule& rule, std::span<const char* const> symbols) {
  ZrtFile file;
  file.buffer_count = static_cast<std::uint32_t>(rule.inputs.size() + rule.outputs.size());
  file.push_const_bytes = static_cast<std::uint32_t>(4 * rule.attrs.size());
  file.code.resize(4 * symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    file.symbols.push_back({symbols[i], static_cast<std::uint32_t>(4 * i)});
    std::memcpy(file.code.data() + 4 * i, &kPlaceholder, 4);
  }
  return file;
}

Status check_patched(std::string_view tier, const ZrtFile& file, Target target) {
  if (file.target != target)
    return fail(StatusCode::kUnavailable, "[{}] kernel {} is for {}, {} wanted", tier, file.name,
                to_string(file.target), to_string(target));
  if (const auto symbol = file.unpatched(); !symbol.empty())
    return fail(StatusCode::kInvalidArgument, "[{}] kernel {}: symbol {} is not patched", tier, file.name, symbol);
  return {};
}

Result<SlotKernel> read_slots(std::string_view tier, const ZrtFile& file, const ir::OpRule& rule,
                              std::span<const char* const> symbols) {
  const auto n_bindings = static_cast<std::uint32_t>(rule.inputs.size() + rule.outputs.size());
  if (file.symbols.size() != symbols.size() || file.buffer_count != n_bindings ||
      file.push_const_bytes != 4 * rule.attrs.size())
    return fail(StatusCode::kCorrupt,
                "[{}] kernel {} has {} symbols, {} buffers and {} bytes of push constants; {}, {} and {} wanted", tier,
                file.name, file.symbols.size(), file.buffer_count, file.push_const_bytes, symbols.size(), n_bindings,
                4 * rule.attrs.size());
  SlotKernel kernel{std::vector<std::uint32_t>(file.symbols.size()), file.push_const_bytes, n_bindings};
  for (std::size_t i = 0; i < file.symbols.size(); ++i) {
    if (file.symbols[i].name != symbols[i])
      return fail(StatusCode::kCorrupt, "[{}] kernel {} has symbol {}, {} wanted", tier, file.name,
                  file.symbols[i].name, symbols[i]);
    std::memcpy(&kernel.symbols[i], file.code.data() + file.symbols[i].code_offset, 4);
  }
  return kernel;
}

}  // namespace zinc_rt::kernel
