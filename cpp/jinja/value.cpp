#include "jinja/value.h"

#include <charconv>

#include "jinja/loop.h"
#include "jinja/unicode.h"

namespace zinc_rt::jinja {

namespace {

template <class Visit>
void with_type(Object* object, Visit visit) {
  switch (object->kind) {
    case Kind::kUndefined: return visit(static_cast<UndefinedObject*>(object));
    case Kind::kStr: return visit(static_cast<StrObject*>(object));
    case Kind::kNumber: return visit(static_cast<NumberObject*>(object));
    case Kind::kList:
    case Kind::kTuple: return visit(static_cast<SeqObject*>(object));
    case Kind::kDict: return visit(static_cast<DictObject*>(object));
    case Kind::kDictView: return visit(static_cast<DictViewObject*>(object));
    case Kind::kRange: return visit(static_cast<RangeObject*>(object));
    case Kind::kIterator: return visit(static_cast<IteratorObject*>(object));
    case Kind::kMethod: return visit(static_cast<MethodObject*>(object));
    case Kind::kNamespace: return visit(static_cast<NamespaceObject*>(object));
    case Kind::kMacro: return visit(static_cast<MacroObject*>(object));
    case Kind::kLoop: return visit(static_cast<LoopObject*>(object));
    case Kind::kCycler: return visit(static_cast<CyclerObject*>(object));
    case Kind::kJoiner: return visit(static_cast<JoinerObject*>(object));
    case Kind::kMissing:
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kBuiltin: return;
  }
}

void clear_values(UndefinedObject* o) {
  o->name = Value();
}
void clear_values(StrObject*) {}
void clear_values(NumberObject*) {}
void clear_values(SeqObject* o) {
  o->items.clear();
}
void clear_values(DictObject* o) {
  o->items.clear();
}
void clear_values(DictViewObject* o) {
  o->dict = Value();
}
void clear_values(RangeObject*) {}
void clear_values(IteratorObject* o) {
  o->next = nullptr;
}
void clear_values(MethodObject* o) {
  o->self = Value();
}
void clear_values(NamespaceObject* o) {
  o->attributes = Value();
}
void clear_values(MacroObject*) {}
void clear_values(LoopObject* o) {
  o->iterable = o->previous_item = o->current_item = o->next_item = Value();
  o->cursor = Cursor();
  o->last_changed.clear();
}
void clear_values(CyclerObject* o) {
  o->items.clear();
}
void clear_values(JoinerObject* o) {
  o->separator = Value();
}

}  // namespace

Heap::~Heap() {
  // The references between the remaining objects are dropped first, while all objects still exist. Then the objects are
  // freed.
  busy_ = true;
  for (Object* o = first_; o != nullptr; o = o->next) {
    with_type(o, [](auto* typed) { clear_values(typed); });
  }
  while (first_ != nullptr) {
    Object* object = first_;
    first_ = object->next;
    with_type(object, [](auto* typed) { delete typed; });
  }
}

Value Heap::adopt(Object* object, std::size_t object_bytes, std::size_t bytes) {
  object->heap = this;
  object->next = first_;
  if (first_ != nullptr) first_->previous = object;
  first_ = object;
  charge(*object, object_bytes + bytes);
  return Value(object);
}

void Heap::charge(Object& object, std::size_t bytes) {
  object.bytes += bytes;
  live_bytes_ += bytes;
}

void Heap::unlink(Object* object) {
  (object->previous != nullptr ? object->previous->next : first_) = object->next;
  if (object->next != nullptr) object->next->previous = object->previous;
  live_bytes_ -= object->bytes;
}

// Frees objects with a work list. Recursion over a chain of a million nested values would need a million stack frames.
void Heap::unreferenced(Object* object) {
  if (busy_) {
    pending_.push_back(object);
    return;
  }
  busy_ = true;
  for (;;) {
    unlink(object);
    with_type(object, [](auto* typed) { delete typed; });
    if (pending_.empty()) break;
    object = pending_.back();
    pending_.pop_back();
  }
  busy_ = false;
}

Value ConstantPool::str(std::string text) {
  auto object = std::make_unique<StrObject>();
  object->kind = Kind::kStr;
  object->refs = Object::kImmortal;
  object->n_chars = static_cast<std::int64_t>(count_chars(text));
  object->text = std::move(text);
  strings_.push_back(std::move(object));
  return Value(strings_.back().get());
}

Value counted(const Value& value) {
  if (!value.is(Kind::kNumber)) return value;
  const auto& number = value.as<NumberObject>();
  if (!number.is_whole) return Value::real(number.real);
  std::int64_t whole = 0;
  const char* end = number.text.data() + number.text.size();
  return std::from_chars(number.text.data(), end, whole).ec == std::errc() ? Value::integer(whole) : value;
}

std::int64_t RangeObject::size() const {
  // The differences fit 64 bits, because the range function limits the numbers.
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

std::int64_t n_chars(const StrObject& str) {
  if (str.n_chars < 0) const_cast<StrObject&>(str).n_chars = static_cast<std::int64_t>(count_chars(str.text));
  return str.n_chars;
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing: return "missing";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kNumber: return value.as<NumberObject>().is_whole ? "int" : "float";
    case Kind::kBuiltin: return "function";
    case Kind::kUndefined: return "Undefined";
    case Kind::kStr: return value.as<StrObject>().markup ? "Markup" : "str";
    case Kind::kList: return "list";
    case Kind::kTuple: return "tuple";
    case Kind::kDict: return "dict";
    case Kind::kDictView:
      switch (value.as<DictViewObject>().view) {
        case ViewKind::kKeys: return "dict_keys";
        case ViewKind::kValues: return "dict_values";
        case ViewKind::kItems: return "dict_items";
      }
      return "dict_keys";
    case Kind::kRange: return "range";
    case Kind::kIterator: return value.as<IteratorObject>().type_name;
    case Kind::kMethod: return "builtin_function_or_method";
    case Kind::kNamespace: return "Namespace";
    case Kind::kMacro: return "Macro";
    case Kind::kLoop: return "LoopContext";
    case Kind::kCycler: return "Cycler";
    case Kind::kJoiner: return "Joiner";
  }
  return "object";
}

}  // namespace zinc_rt::jinja
