// RenderLimits says how much memory and time one render of a template may use. Templates come with model files and are
// not trusted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>

namespace zinc_rt {

struct RenderLimits {
  // The output may be this large, including the marks of text from outside and the text that macros and blocks are
  // collecting.
  std::size_t max_output_bytes = 16u << 20;
  std::uint64_t max_steps = 100'000'000;     // evaluated nodes, visited items, and one per 256 bytes of text
  std::size_t max_depth = 256;               // nested calls, and the nesting of values that are printed or compared
  std::size_t max_value_bytes = 128u << 20;  // all live values of the render together, including the context
  // The time is the thread's processor time, so that a busy machine refuses no more templates than an idle one.
  std::uint32_t max_time_ms = 1000;
  std::stop_token cancel = {};  // if a stop is requested, on any thread, the render ends with kCancelled
  // strftime_now returns this time instead of the clock's. It is shown in the process's time zone.
  std::optional<std::chrono::system_clock::time_point> now = {};
};

}  // namespace zinc_rt
