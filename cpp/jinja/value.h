// Value is a value of a template: Python's None, bool, int, float, str, list, tuple or dict, or one of the few objects
// that Jinja adds. Scalars are stored in the value. All other values are reference-counted objects that belong to the
// Heap of one render.
// Thread rule: a value belongs to the thread of its render. Constants of a parsed template are immortal (their
// references are not counted), so several renders may hold them at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/marked_text.h"
#include "zinc_rt/status.h"

namespace zinc_rt::jinja {

enum class Kind : std::uint8_t {
  kMissing,  // an argument that was not given or a variable that is not set; templates never see it
  kNone,
  kBool,
  kInt,
  kFloat,
  kBuiltin,  // a function that this engine provides
  // All kinds from here on are reference-counted objects.
  kUndefined,
  kNumber,
  kStr,
  kList,
  kTuple,
  kDict,
  kDictView,
  kRange,
  kIterator,
  kMethod,
  kNamespace,
  kMacro,
  kLoop,
  kCycler,
  kJoiner,
};

class Heap;
class Runtime;
class Value;
struct Args;
struct Object;

// Function is the type of a function that templates can call. `self` is the object whose method is called; it is
// missing for a global function.
using Function = Result<Value> (*)(Runtime&, const Value& self, Args& args);
struct Builtin {
  std::string_view name;
  Function call;
};

class Value {
 public:
  Value() : kind_(Kind::kMissing), int_(0) {}
  static Value none();
  static Value boolean(bool b);
  static Value integer(std::int64_t i);
  static Value real(double d);
  static Value builtin(const Builtin* function);
  explicit Value(Object* object);  // takes over one counted reference

  Value(const Value& other) : kind_(other.kind_), int_(other.int_) { retain(); }
  Value(Value&& other) noexcept : kind_(std::exchange(other.kind_, Kind::kMissing)), int_(other.int_) {}
  Value& operator=(const Value& other) {
    Value copy(other);
    swap(copy);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    Value moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Value() { release(); }
  void swap(Value& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(int_, other.int_);
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_missing() const { return kind_ == Kind::kMissing; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_none() const { return kind_ == Kind::kNone; }
  bool is_str() const { return kind_ == Kind::kStr; }
  bool is_integral() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integral() || kind_ == Kind::kFloat || kind_ == Kind::kNumber; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  // Return the value as a C++ type. REQUIRES: the value has the matching kind.
  bool as_bool() const { return int_ != 0; }
  std::int64_t as_int() const { return int_; }  // works for bools too
  double as_real() const;                       // works for every kind of number
  const Builtin* as_builtin() const { return builtin_; }
  Object* object() const { return object_; }
  template <class T>
  T& as() const {
    return *static_cast<T*>(object_);
  }
  const std::string& text() const;  // returns the text of a str
  MarkedView view() const;          // the text of a str, in which bytes that came from outside the template are marked

 private:
  void retain() const;
  void release();

  Kind kind_;
  union {
    std::int64_t int_;
    double real_;
    const Builtin* builtin_;
    Object* object_;
  };
};

struct Object {
  static constexpr std::uint32_t kImmortal = 0xffffffff;
  Kind kind;
  std::uint32_t refs = 1;
  std::size_t bytes = 0;  // number of bytes that the heap counts for this object
  Heap* heap = nullptr;
  Object* previous = nullptr;
  Object* next = nullptr;
};

// Owns all objects of one render and counts their bytes. Its destructor frees all objects that are left, including
// reference cycles.
class Heap {
 public:
  Heap() = default;
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();

  // Takes ownership of a new object. object_bytes is the size of its struct, bytes the memory that it holds besides.
  Value adopt(Object* object, std::size_t object_bytes, std::size_t bytes);
  void charge(Object& object, std::size_t bytes);
  void unreferenced(Object* object);
  std::size_t live_bytes() const { return live_bytes_; }
  // Count memory that belongs to the render but not to an object, such as activations.
  void add_bytes(std::size_t bytes) { live_bytes_ += bytes; }
  void subtract_bytes(std::size_t bytes) { live_bytes_ -= bytes; }

 private:
  void unlink(Object* object);

  Object* first_ = nullptr;
  std::size_t live_bytes_ = 0;
  // True while objects are freed; objects that lose their last reference meanwhile wait in pending_.
  bool busy_ = false;
  std::vector<Object*> pending_;
};

struct StrObject : Object {
  std::string text;
  std::int64_t n_chars = -1;  // number of characters; counted on first use, for immortals when they are created
  bool markup = false;        // whether the text is escaped for HTML already
  // The following members say which bytes came from outside the template. They only mark bytes: no operation returns a
  // different text because of them.
  bool is_foreign = false;                         // all bytes came from outside
  std::unique_ptr<const TextSpans> foreign_parts;  // the parts that came from outside, if not all bytes did
};

// NumberObject is a number of the context that keeps its text, because no 64-bit int or float would be printed the same
// way: 2^64, 0.10, 1e5.
struct NumberObject : Object {
  std::string text;
  double real = 0;        // the nearest double, for arithmetic
  bool is_whole = false;  // whether Python reads the text as an int, otherwise as a float
};

struct SeqObject : Object {
  std::vector<Value> items;
  // True for a tuple that the groupby filter made. Its two items are also called .grouper and .list.
  bool is_group = false;
};

struct DictObject : Object {
  std::vector<std::pair<Value, Value>> items;  // the items in the order of insertion
  std::vector<std::uint32_t> buckets;          // hash table of item index + 1; empty while the dict has few items
};

enum class ViewKind : std::uint8_t { kKeys, kValues, kItems };
struct DictViewObject : Object {
  Value dict;
  ViewKind view;
};

// The largest magnitude of a range's numbers. With this limit, all arithmetic on them stays within 64 bits.
inline constexpr std::int64_t kMaxRangeBound = std::int64_t{1} << 40;
struct RangeObject : Object {
  std::int64_t start, stop, step;
  std::int64_t size() const;
};

// UndefinedObject is an undefined value. It holds what its error message needs: a hint, or the missing name and the
// type of the object that lacks it.
struct UndefinedObject : Object {
  std::string hint;
  std::string owner;
  Value name;
};

// Advances an iterator: stores the next item in its second argument and returns true. Returns false if no item is left.
using NextFunction = std::function<Result<bool>(Runtime&, Value&)>;
struct IteratorObject : Object {
  std::string_view type_name;
  NextFunction next;
  std::uint32_t depth = 1;  // number of nested iterators that this one reads from, including itself
  bool running = false;
};

struct MethodObject : Object {
  Value self;
  const Builtin* method;
};

struct NamespaceObject : Object {
  Value attributes;  // a dict of the namespace's attributes
};

struct MacroProto;
struct Activation;
struct MacroObject : Object {
  const MacroProto* proto;
  Activation* closure;  // variables of the surrounding function; valid until the render ends
};

struct LoopObject;

struct CyclerObject : Object {
  std::vector<Value> items;
  std::size_t position = 0;
};

struct JoinerObject : Object {
  Value separator;
  bool used = false;
};

// Args holds the arguments of a call, by position and by name.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  bool has_foreign_names = false;  // at least one of the names came from outside the template
};

inline Value Value::none() {
  Value v;
  v.kind_ = Kind::kNone;
  return v;
}
inline Value Value::boolean(bool b) {
  Value v;
  v.kind_ = Kind::kBool;
  v.int_ = b ? 1 : 0;
  return v;
}
inline Value Value::integer(std::int64_t i) {
  Value v;
  v.kind_ = Kind::kInt;
  v.int_ = i;
  return v;
}
inline Value Value::real(double d) {
  Value v;
  v.kind_ = Kind::kFloat;
  v.real_ = d;
  return v;
}
inline Value Value::builtin(const Builtin* function) {
  Value v;
  v.kind_ = Kind::kBuiltin;
  v.builtin_ = function;
  return v;
}
inline Value::Value(Object* object) : kind_(object->kind), object_(object) {}
inline void Value::retain() const {
  if (kind_ >= Kind::kUndefined && object_->refs != Object::kImmortal) ++object_->refs;
}
inline void Value::release() {
  if (kind_ >= Kind::kUndefined && object_->refs != Object::kImmortal && --object_->refs == 0) {
    object_->heap->unreferenced(object_);
  }
}
inline double Value::as_real() const {
  if (kind_ == Kind::kNumber) return as<NumberObject>().real;
  return kind_ == Kind::kFloat ? real_ : static_cast<double>(int_);
}
inline const std::string& Value::text() const {
  return as<StrObject>().text;
}
inline MarkedView Value::view() const {
  const auto& str = as<StrObject>();
  return str.foreign_parts ? MarkedView(str.text, *str.foreign_parts) : MarkedView(str.text, str.is_foreign);
}

// Owns the constants of one template, which outlive all of the template's renders.
class ConstantPool {
 public:
  Value str(std::string text);

 private:
  std::vector<std::unique_ptr<StrObject>> strings_;
};

// Returns the value with which arithmetic computes. For a kNumber this is its int or float, unless it is an int that
// does not fit 64 bits. All other values are returned unchanged.
Value counted(const Value& value);
// Returns whether the value is an int that does not fit 64 bits. REQUIRES: the value is a result of counted().
inline bool is_beyond_ints(const Value& value) {
  return value.is(Kind::kNumber);
}

// Returns Python's name of the value's type, as in "'str object' has no attribute 'x'".
std::string_view type_name(const Value& value);

std::int64_t n_chars(const StrObject& str);
inline bool is_ascii(const StrObject& str) {
  return n_chars(str) == static_cast<std::int64_t>(str.text.size());
}

}  // namespace zinc_rt::jinja
