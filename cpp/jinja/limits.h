// What one render may use. Templates come with model files and are untrusted input.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>

namespace zinc_rt {

struct RenderLimits {
  std::size_t max_output_bytes = 16u << 20;  // output, with the marks of what is foreign and the text that macros
                                             // and blocks are collecting
  std::uint64_t max_steps = 100'000'000;     // evaluated nodes, visited items, one per 256 bytes of text
  std::size_t max_depth = 256;               // nested calls, and the nesting of values that are printed or compared
  std::size_t max_value_bytes = 128u << 20;  // all live values of the render together, the context included
  std::uint32_t max_time_ms = 1000;          // of the thread's processor time, so that a busy machine refuses no more
  std::stop_token cancel = {};               // requested from any thread, it ends the render with kCancelled
  // What strftime_now sees instead of the clock; shown in the process's time zone.
  std::optional<std::chrono::system_clock::time_point> now = {};
};

}  // namespace zinc_rt
