// The state of one render, shared by operations, filters and methods: the heap, the limits, and calls back into
// templates. Thread rule: one render, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "jinja/limits.h"
#include "jinja/value.h"

namespace zinc_rt::jinja {

// Creates the errors that templates cause. The line number is added where the render ends.
template <class... Args>
std::unexpected<Error> raise(fmt::format_string<Args...> format, Args&&... args) {
  return fail(StatusCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

// Making or comparing text costs steps, so that filters over a few long texts also check the clock.
inline constexpr std::size_t kBytesPerStep = 256;

class Runtime {
 public:
  explicit Runtime(const RenderLimits& limits);
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Counts n steps. Returns true once a limit is passed; limit_error() then says which.
  bool over(std::uint64_t n = 1) {
    steps_ += n;
    if (steps_ < next_check_ && heap_.live_bytes() <= limits_.max_value_bytes) [[likely]]
      return false;
    return check_limits();
  }
  std::unexpected<Error> limit_error() const;
  // Returns whether values may grow by this many bytes. Call it before an operation that can multiply the size of its
  // input.
  Status reserve(std::uint64_t bytes, std::uint64_t count = 1);

  Value str(std::string text, bool markup = false);  // the template's own text
  Value str(MarkedText text, bool markup = false);   // what is marked is foreign
  Value foreign_str(std::string text);
  // A text within str's memory. Its bytes have the marks that they have in str.
  Value part(const Value& str, std::string_view text, bool markup);
  Value number(std::string text);  // REQUIRES: a number of JSON
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  Value dict();
  Value range(std::int64_t start, std::int64_t stop, std::int64_t step);
  Value undefined(std::string hint);                              // its error message is the hint
  Value undefined_name(Value name);                               // "'x' is undefined"
  Value undefined_member(const Value& owner, const Value& name);  // "'dict object' has no attribute 'x'"
  Value iterator(std::string_view type_name, NextFunction next, const Value& source);
  Value method(Value self, const Builtin* method);

  virtual Result<Value> call(const Value& callee, Args& args) = 0;
  virtual Result<Value> call_loop(const LoopObject& loop, const Value& iterable) = 0;

  Heap& heap() { return heap_; }
  const RenderLimits& limits() const { return limits_; }

  // One level of recursion over calls or nested values. The destructor ends it.
  class Level {
   public:
    explicit Level(Runtime& rt) : rt_(rt) { ++rt_.depth_; }
    ~Level() { --rt_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& rt_;
  };
  // True if the recursion is too deep or the part of the thread's stack that a render may use is used up.
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
  std::chrono::nanoseconds start_;  // the thread's processor time when the render began
  std::string exceeded_;
  StatusCode exceeded_code_ = StatusCode::kExhausted;
};

// The stack that one parse or render may use, whatever the build's frame sizes.
inline constexpr std::size_t kMaxStackBytes = 3u << 20;
inline std::uintptr_t stack_position() {
  return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
}

}  // namespace zinc_rt::jinja
