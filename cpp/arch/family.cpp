#include "arch/family.h"

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::arch {

Result<const Family*> find_family(std::string_view architecture) {
  std::vector<std::string_view> supported;
  for (const Family* family : families()) {
    if (std::ranges::find(family->architectures, architecture) != family->architectures.end()) return family;
    if (family->build != nullptr)  // not the draft blocks, which are no models
      supported.insert(supported.end(), family->architectures.begin(), family->architectures.end());
  }
  return fail(StatusCode::kUnavailable, "[arch] architecture \"{}\" is not supported; supported: {}", architecture,
              fmt::join(supported, ", "));
}

}  // namespace zinc_rt::arch
