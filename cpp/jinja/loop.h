// Iteration over any iterable value, and the `loop` variable of a for statement.
#pragma once

#include <cstdint>
#include <vector>

#include "jinja/value.h"

namespace zinc_rt::jinja {

struct ForStmt;

// A position in an iterable. Cursors over one iterator share its position: an item that one of them takes is not seen
// by the others.
class Cursor {
 public:
  Cursor() = default;
  explicit Cursor(Value source) : source_(std::move(source)) {}
  Result<bool> next(Runtime& rt, Value& item);
  const Value& source() const { return source_; }

 private:
  Value source_;
  std::size_t position_ = 0;
};

struct LoopObject : Object {
  Value iterable;
  Cursor cursor;
  std::int64_t index0 = -1;
  std::int64_t length = -1;  // unknown until asked for
  std::int64_t depth0 = 0;
  Value previous_item;
  Value current_item;
  Value next_item;      // the item that peek() has read ahead; else missing
  bool peeked = false;  // next_item was read ahead; missing then means the end
  std::vector<Value> last_changed;
  bool changed_called = false;
  const ForStmt* recursive = nullptr;  // the statement to run again on loop(...)
  Activation* closure = nullptr;

  Result<bool> advance(Runtime& rt);
  Result<bool> peek(Runtime& rt);  // whether there is a next item
  Result<std::int64_t> total(Runtime& rt);
};

// An attribute of loop by name, missing when there is no such attribute.
Result<Value> loop_attribute(Runtime& rt, const Value& loop, std::string_view name);

}  // namespace zinc_rt::jinja
