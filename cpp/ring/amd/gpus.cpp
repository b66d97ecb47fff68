#include "ring/amd/gpus.h"

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::ring {
namespace {

struct Row {
  GfxVersion version;
  kernel::Target target;
};
constexpr Row kRows[] = {{{12, 0, 1}, kernel::Target::kGfx1201},
                         {{12, 0, 0}, kernel::Target::kGfx1201},
                         {{11, 5, 1}, kernel::Target::kGfx1151},
                         {{11, 0, 0}, kernel::Target::kGfx1100}};

std::string text_of(const GfxVersion& v) {
  return fmt::format("gfx{}{:x}{:x}", v.major, v.minor, v.revision);
}

}  // namespace

GfxVersion gfx_of_topology(std::uint32_t version) {
  return {version / 10000, version / 100 % 100, version % 100};
}
GfxVersion gfx_of_engine(std::uint32_t version) {
  return {version >> 16, version >> 8 & 255, version & 255};
}

Result<kernel::Target> target_of(const GfxVersion& version) {
  if (const auto* row = std::ranges::find(kRows, version, &Row::version); row != std::end(kRows)) return row->target;
  std::string known;
  for (const Row& row : kRows) known += (known.empty() ? "" : ", ") + text_of(row.version);
  return fail(StatusCode::kUnavailable, "the GPU is {}; kernels are for {}", text_of(version), known);
}

}  // namespace zinc_rt::ring
