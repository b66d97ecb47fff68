// Makes numpy arrays of C++ vectors without a copy: the array owns the vector's memory.
#pragma once

#include <pybind11/numpy.h>

#include <utility>
#include <vector>

namespace zinc_rt::python {

// Returns a [rows, width] array that takes ownership of the vector.
inline pybind11::array_t<float> to_array(std::vector<float>&& values, std::size_t width) {
  auto* owned = new std::vector<float>(std::move(values));
  const pybind11::capsule owner(owned, [](void* p) { delete static_cast<std::vector<float>*>(p); });
  return pybind11::array_t<float>({owned->size() / width, width}, owned->data(), owner);
}

}  // namespace zinc_rt::python
