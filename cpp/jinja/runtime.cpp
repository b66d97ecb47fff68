#include "jinja/runtime.h"

#include <algorithm>

#include "base/json_number.h"
#include "base/platform/this_thread.h"

namespace zinc_rt::jinja {

namespace {

// The clock is checked once per this number of steps.
constexpr std::uint64_t kCheckInterval = 2048;

template <class T>
T* make(Kind kind) {
  T* object = new T;
  object->kind = kind;
  return object;
}

}  // namespace

Runtime::Runtime(const RenderLimits& limits) : limits_(limits), stack_start_(stack_position()), start_(thread_time()) {
  next_check_ = std::min(kCheckInterval, limits.max_steps);
}

bool Runtime::check_limits() {
  if (!exceeded_.empty()) return true;
  if (limits_.cancel.stop_requested()) {
    exceeded_ = "the render was cancelled";
    exceeded_code_ = StatusCode::kCancelled;
    return true;
  }
  if (heap_.live_bytes() > limits_.max_value_bytes) {
    exceeded_ = fmt::format("the template's values need more than {} bytes", limits_.max_value_bytes);
    return true;
  }
  if (steps_ >= limits_.max_steps) {
    exceeded_ = fmt::format("the template takes more than {} steps", limits_.max_steps);
    return true;
  }
  if (thread_time() - start_ > std::chrono::milliseconds(limits_.max_time_ms)) {
    exceeded_ = fmt::format("the template takes more than {} ms", limits_.max_time_ms);
    return true;
  }
  next_check_ = std::min(steps_ + kCheckInterval, limits_.max_steps);
  return false;
}

std::unexpected<Error> Runtime::limit_error() const {
  return fail(exceeded_code_, "{}", exceeded_);
}

Status Runtime::reserve(std::uint64_t bytes, std::uint64_t count) {
  std::uint64_t total = 0;
  if (!__builtin_mul_overflow(bytes, count, &total) && total <= limits_.max_value_bytes &&
      heap_.live_bytes() <= limits_.max_value_bytes - total) {
    return {};
  }
  return fail(StatusCode::kExhausted, "{} x {} more bytes of values wanted, {} allowed in all", count, bytes,
              limits_.max_value_bytes);
}

bool Runtime::too_deep() const {
  std::uintptr_t here = stack_position();
  std::uintptr_t used = here < stack_start_ ? stack_start_ - here : here - stack_start_;
  return depth_ > limits_.max_depth || used > kMaxStackBytes;
}

std::unexpected<Error> Runtime::depth_error() const {
  return fail(StatusCode::kExhausted, "calls or values are nested too deep (depth {}, {} allowed)", depth_,
              limits_.max_depth);
}

Value Runtime::make_str(std::string text, bool is_foreign, std::unique_ptr<const TextSpans> parts, bool markup) {
  steps_ += text.size() / kBytesPerStep;
  auto* object = make<StrObject>(Kind::kStr);
  object->text = std::move(text);
  object->markup = markup;
  object->is_foreign = is_foreign;
  object->foreign_parts = std::move(parts);
  std::size_t bytes = object->text.capacity();
  if (object->foreign_parts) bytes += sizeof(TextSpans) + object->foreign_parts->capacity() * sizeof(TextSpan);
  return heap_.adopt(object, sizeof(StrObject), bytes);
}

Value Runtime::str(std::string text, bool markup) {
  return make_str(std::move(text), false, nullptr, markup);
}

Value Runtime::foreign_str(std::string text) {
  return make_str(std::move(text), true, nullptr, false);
}

Value Runtime::str(MarkedText text, bool markup) {
  const bool is_foreign = text.view().is_all_marked();
  std::unique_ptr<const TextSpans> parts;
  if (text.has_marks() && !is_foreign) parts = std::make_unique<const TextSpans>(text.take_marks());
  return make_str(text.take_text(), is_foreign, std::move(parts), markup);
}

Value Runtime::part(const Value& str, std::string_view text, bool markup) {
  const MarkedView view = str.view().sub(text);
  const bool is_foreign = view.is_all_marked();
  std::unique_ptr<const TextSpans> parts;
  if (view.has_marks() && !is_foreign) parts = std::make_unique<const TextSpans>(view.marks());
  return make_str(std::string(text), is_foreign, std::move(parts), markup);
}

Value Runtime::number(std::string text) {
  auto* object = make<NumberObject>(Kind::kNumber);
  object->is_whole = is_written_whole(text);
  object->real = number_value(std::string_view(text));
  if (object->is_whole && object->real == 0) object->real = 0;  // Python's int has no -0
  object->text = std::move(text);
  return heap_.adopt(object, sizeof(NumberObject), object->text.capacity());
}

Value Runtime::list(std::vector<Value> items) {
  auto* object = make<SeqObject>(Kind::kList);
  object->items = std::move(items);
  return heap_.adopt(object, sizeof(SeqObject), object->items.capacity() * sizeof(Value));
}

Value Runtime::tuple(std::vector<Value> items) {
  auto* object = make<SeqObject>(Kind::kTuple);
  object->items = std::move(items);
  return heap_.adopt(object, sizeof(SeqObject), object->items.capacity() * sizeof(Value));
}

Value Runtime::dict() {
  return heap_.adopt(make<DictObject>(Kind::kDict), sizeof(DictObject), 0);
}

Value Runtime::range(std::int64_t start, std::int64_t stop, std::int64_t step) {
  auto* object = make<RangeObject>(Kind::kRange);
  object->start = start;
  object->stop = stop;
  object->step = step;
  return heap_.adopt(object, sizeof(RangeObject), 0);
}

Value Runtime::undefined(std::string hint) {
  auto* object = make<UndefinedObject>(Kind::kUndefined);
  object->hint = std::move(hint);
  return heap_.adopt(object, sizeof(UndefinedObject), object->hint.capacity());
}

Value Runtime::undefined_name(Value name) {
  auto* object = make<UndefinedObject>(Kind::kUndefined);
  object->name = std::move(name);
  return heap_.adopt(object, sizeof(UndefinedObject), 0);
}

Value Runtime::undefined_member(const Value& owner, const Value& name) {
  auto* object = make<UndefinedObject>(Kind::kUndefined);
  object->owner = owner.is_none() ? std::string("None") : fmt::format("{} object", type_name(owner));
  object->name = name;
  return heap_.adopt(object, sizeof(UndefinedObject), object->owner.capacity());
}

Value Runtime::iterator(std::string_view type_name, NextFunction next, const Value& source) {
  auto* object = make<IteratorObject>(Kind::kIterator);
  object->type_name = type_name;
  object->next = std::move(next);
  if (source.is(Kind::kIterator)) object->depth = source.as<IteratorObject>().depth + 1;
  return heap_.adopt(object, sizeof(IteratorObject), 128);
}

Value Runtime::method(Value self, const Builtin* method) {
  auto* object = make<MethodObject>(Kind::kMethod);
  object->self = std::move(self);
  object->method = method;
  return heap_.adopt(object, sizeof(MethodObject), 0);
}

}  // namespace zinc_rt::jinja
