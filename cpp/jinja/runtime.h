// Runtime is the state of one render that operations, filters and methods share: the heap, the limits, and calls back
// into macros of the template.
// Thread rule: one render, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "jinja/limits.h"
#include "jinja/value.h"

namespace zinc_rt::jinja {

// Creates an error that a template causes. The line number is added where the render ends.
template <class... Args>
std::unexpected<Error> raise(fmt::format_string<Args...> format, Args&&... args) {
  return fail(StatusCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

// Making or comparing text counts as one step per kBytesPerStep bytes. So filters over a few long texts also check the
// time limit.
inline constexpr std::size_t kBytesPerStep = 256;

class Runtime {
 public:
  explicit Runtime(const RenderLimits& limits);
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Counts n steps. Returns true once a limit is exceeded, and limit_error() then says which.
  bool over(std::uint64_t n = 1) {
    steps_ += n;
    if (steps_ < next_check_ && heap_.live_bytes() <= limits_.max_value_bytes) [[likely]]
      return false;
    return check_limits();
  }
  std::unexpected<Error> limit_error() const;
  // Returns an error if values may not grow by this many bytes. Call it before an operation that can multiply the size
  // of its input.
  Status reserve(std::uint64_t bytes, std::uint64_t count = 1);

  Value str(std::string text, bool markup = false);  // makes a str of the template's own text
  Value str(MarkedText text, bool markup = false);   // makes a str whose marked parts came from outside the template
  Value foreign_str(std::string text);
  // Makes a str of a part of another str. `text` lies in the memory of `str`, and its bytes keep their marks.
  Value part(const Value& str, std::string_view text, bool markup);
  Value number(std::string text);  // REQUIRES: the text is a number of JSON
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  Value dict();
  Value range(std::int64_t start, std::int64_t stop, std::int64_t step);
  Value undefined(std::string hint);  // makes an undefined value whose error message is the hint
  Value undefined_name(Value name);   // makes an undefined value whose error message is "'x' is undefined"
  // Makes an undefined value whose error message is "'dict object' has no attribute 'x'".
  Value undefined_member(const Value& owner, const Value& name);
  Value iterator(std::string_view type_name, NextFunction next, const Value& source);
  Value method(Value self, const Builtin* method);

  virtual Result<Value> call(const Value& callee, Args& args) = 0;
  virtual Result<Value> call_loop(const LoopObject& loop, const Value& iterable) = 0;

  Heap& heap() { return heap_; }
  const RenderLimits& limits() const { return limits_; }

  // Counts one level of recursion over calls or nested values while the object exists.
  class Level {
   public:
    explicit Level(Runtime& rt) : rt_(rt) { ++rt_.depth_; }
    ~Level() { --rt_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& rt_;
  };
  // Returns whether the recursion is too deep, or the render has used its part of the thread's stack.
  bool too_deep() const;
  std::unexpected<Error> depth_error() const;

 protected:
  RenderLimits limits_;
  Heap heap_;

 private:
  Value make_str(std::string text, bool is_foreign, std::unique_ptr<const TextSpans> parts, bool markup);
  bool check_limits();

  std::uint64_t steps_ = 0;
  std::uint64_t next_check_ = 0;
  std::size_t depth_ = 0;
  std::uintptr_t stack_start_;
  std::chrono::nanoseconds start_;  // processor time of the thread when the render began
  std::string exceeded_;
  StatusCode exceeded_code_ = StatusCode::kExhausted;
};

// The most bytes of stack that one parse or render may use. The limit is independent of the frame sizes of the build.
inline constexpr std::size_t kMaxStackBytes = 3u << 20;
inline std::uintptr_t stack_position() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

}  // namespace zinc_rt::jinja
