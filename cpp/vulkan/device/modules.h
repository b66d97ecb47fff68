// The kernels of kernels/vulkan, which were compiled to SPIR-V when the project was built. Thread rule: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace zinc_rt::vulkan {

// Fma tells how a kernel computes a fused multiply-add (kernels/vulkan/exact_math.glsl). A kernel without fma has only
// one form.
enum class Fma : std::uint8_t { kNative, kGuardedByDoubles, kGuarded, kDoubles, kIntegers };
// The forms in the order in which they are tried, the fastest first.
inline constexpr Fma kFmaForms[] = {Fma::kNative, Fma::kGuardedByDoubles, Fma::kGuarded, Fma::kDoubles, Fma::kIntegers};
constexpr bool needs_doubles(Fma form) {
  return form == Fma::kGuardedByDoubles || form == Fma::kDoubles;
}
constexpr std::string_view to_string(Fma form) {
  constexpr std::string_view kNames[] = {"native", "guarded_doubles", "guarded", "doubles", "integers"};
  return kNames[static_cast<std::size_t>(form)];
}

struct Module {
  std::string_view name;  // such as "linear.doubles", or "add" for a kernel with one form
  std::span<const std::uint32_t> words;
};
std::span<const Module> modules();

}  // namespace zinc_rt::vulkan
