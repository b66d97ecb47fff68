// Implements iteration over any iterable value, and the variable `loop` of a for statement.
#pragma once

#include <cstdint>
#include <vector>

#include "jinja/value.h"

namespace zinc_rt::jinja {

struct ForStmt;

// Cursor is a position in an iterable. Two cursors over one iterator share its position, as in Python: an item that one
// cursor takes is not returned by the other cursor.
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
  std::int64_t length = -1;  // number of items; -1 until the template reads the number
  std::int64_t depth0 = 0;
  Value previous_item;
  Value current_item;
  Value next_item;      // the item that peek() has read ahead; missing if there was no further item
  bool peeked = false;  // peek() has read ahead; a missing next_item then means the end
  std::vector<Value> last_changed;
  bool changed_called = false;
  const ForStmt* recursive = nullptr;  // the statement that loop(...) runs again; null if the loop is not recursive
  Activation* closure = nullptr;

  Result<bool> advance(Runtime& rt);
  Result<bool> peek(Runtime& rt);  // returns whether there is a next item
  Result<std::int64_t> total(Runtime& rt);
};

// Returns an attribute of `loop` by name, such as loop.index. Returns missing if `loop` has no such attribute.
Result<Value> loop_attribute(Runtime& rt, const Value& loop, std::string_view name);

}  // namespace zinc_rt::jinja
