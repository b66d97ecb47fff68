#include "model/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>

#define XXH_INLINE_ALL  // without the library, because builds for other processors have only headers
#include <xxhash.h>

namespace zinc_rt {
namespace {

// A tensor's hash covers kStretches pieces of kStretchBytes each. The first piece is the tensor's beginning and the
// last its end.
constexpr std::size_t kStretches = 16, kStretchBytes = 512;

}  // namespace

std::string fingerprint(const Weights& weights) {
  XXH3_state_t* const state = XXH3_createState();
  XXH3_128bits_reset(state);
  for (const Tensor& tensor : weights.all()) {
    const auto shape = fmt::format("{} {} {} {} {} {};", tensor.name, static_cast<int>(tensor.stored), tensor.dims[0],
                                   tensor.dims[1], tensor.dims[2], tensor.dims[3]);
    XXH3_128bits_update(state, shape.data(), shape.size());
    const std::size_t n = std::min(kStretchBytes, tensor.data.size()), last = tensor.data.size() - n;
    for (std::size_t i = 0; i < kStretches; ++i)
      XXH3_128bits_update(state, tensor.data.data() + last / (kStretches - 1) * i, n);
    XXH3_128bits_update(state, tensor.data.data() + last, n);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace zinc_rt
