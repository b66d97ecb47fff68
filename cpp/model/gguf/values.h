// Each function makes a metadata value of one GGUF type. The functions are used by code that writes metadata: the GGUF
// writer's callers, the MLC reader and tests.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/gguf/metadata.h"

namespace zinc_rt::gguf {

inline Value u32(std::uint64_t value) {
  return {ValueType::kU32, false, static_cast<std::int64_t>(value)};
}
inline Value f32(double value) {
  // The value is rounded to f32, so that it equals what a reader of the file will see.
  return {ValueType::kF32, false, static_cast<double>(static_cast<float>(value))};
}
inline Value boolean(bool value) {
  return {ValueType::kBool, false, value};
}
inline Value string(std::string value) {
  return {ValueType::kString, false, std::move(value)};
}
inline Value strings(std::vector<std::string> values) {
  return {ValueType::kString, true, std::move(values)};
}
inline Value i32s(std::vector<std::int64_t> values) {
  return {ValueType::kI32, true, std::move(values)};
}
inline Value f32s(std::vector<double> values) {
  return {ValueType::kF32, true, std::move(values)};
}

}  // namespace zinc_rt::gguf
