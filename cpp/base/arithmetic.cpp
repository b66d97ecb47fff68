#include "base/arithmetic.h"

#include <array>

namespace zinc_rt {
namespace {

// The names of the enumerators of Arithmetic and of Activations. A name's index is the enumerator's number.
constexpr std::array<std::string_view, 2> kArithmetics = {"exact", "fast"}, kActivations = {"int8", "f32"};

template <class T>
std::optional<T> find(const std::array<std::string_view, 2>& names, std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<T>(i);
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Arithmetic arithmetic) {
  return kArithmetics[static_cast<std::size_t>(arithmetic)];
}

std::string_view to_string(Activations activations) {
  return kActivations[static_cast<std::size_t>(activations)];
}

std::optional<Arithmetic> find_arithmetic(std::string_view name) {
  return find<Arithmetic>(kArithmetics, name);
}

std::optional<Activations> find_activations(std::string_view name) {
  return find<Activations>(kActivations, name);
}

std::vector<std::string> arithmetic_names() {
  return {kArithmetics.begin(), kArithmetics.end()};
}

std::vector<std::string> activations_names() {
  return {kActivations.begin(), kActivations.end()};
}

}  // namespace zinc_rt
