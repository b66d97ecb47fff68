// Defines the two settings that decide how a model is computed, Arithmetic and Activations, and the names of their
// values in options.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zinc_rt {

// Says how sums of floating-point products are ordered and rounded (docs/arithmetic.md).
enum class Arithmetic : std::uint8_t {
  kExact,  // the default: the same bits on every tier and in every batch
  kFast,   // a tier may sum in any order and round to 16 bits where this is faster
};

// Says to which type the activations x are converted in products y = x W^T with quantized weights.
enum class Activations : std::uint8_t {
  kInt8,  // rows of 8-bit codes with scales
  kF32,   // rows of floats, not quantized: a debugging mode of the reference kernels
};

std::string_view to_string(Arithmetic arithmetic);
std::string_view to_string(Activations activations);
// Find the value with this name. Both return nullopt for an unknown name.
std::optional<Arithmetic> find_arithmetic(std::string_view name);
std::optional<Activations> find_activations(std::string_view name);
std::vector<std::string> arithmetic_names();
std::vector<std::string> activations_names();

}  // namespace zinc_rt
