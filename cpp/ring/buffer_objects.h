// BufferObjects holds the buffer objects that a ring has created, and finds them by id. Each tier's memory class
// derives from it. The template parameter Object is the tier's record of an object's memory. An id is an index into a
// list, so that resolving a binding is one look-up. Ids are not reused.
// Thread rule: one thread at a time, as for Ring.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ring/packet.h"

namespace zinc_rt::ring {

// Object has a member `bytes`, which is 0 after the object was freed.
template <class Object>
class BufferObjects {
 public:
  // Returns true if the binding is absent, or if its range lies within its buffer object. If it returns false, refuse()
  // returns the error to report, kInvalidArgument.
  bool holds(const Binding& binding) const {
    if (binding.bo == 0) return true;
    const Object* object = find(binding.bo);
    return object != nullptr && binding.offset <= object->bytes && binding.bytes <= object->bytes - binding.offset;
  }
  std::unexpected<Error> refuse(const Binding& binding) const {
    const Object* object = find(binding.bo);
    if (object == nullptr) return does_not_exist(binding.bo);
    return fail(StatusCode::kInvalidArgument, "[{}] a binding of {} bytes at {} leaves buffer object {} of {} bytes",
                tier_, binding.bytes, binding.offset, binding.bo, object->bytes);
  }

 protected:
  // `tier` is the word in brackets at the beginning of error messages.
  explicit BufferObjects(std::string_view tier) : tier_(tier) {}

  Buffer add(Object object, Heap heap) {
    objects_.push_back(std::move(object));
    return {static_cast<std::uint32_t>(objects_.size()), objects_.back().bytes, heap};
  }
  // Returns null for an id that was never handed out or whose object was freed.
  Object* find(std::uint32_t id) { return is_there(id) ? &objects_[id - 1] : nullptr; }
  const Object* find(std::uint32_t id) const { return is_there(id) ? &objects_[id - 1] : nullptr; }
  std::unexpected<Error> does_not_exist(std::uint32_t id) const {
    return fail(StatusCode::kInvalidArgument, "[{}] buffer object {} does not exist", tier_, id);
  }
  // Returns the object of an id. REQUIRES: it exists.
  Object& at(std::uint32_t id) { return objects_[id - 1]; }
  const Object& at(std::uint32_t id) const { return objects_[id - 1]; }
  std::uint32_t last_id() const { return static_cast<std::uint32_t>(objects_.size()); }

 private:
  bool is_there(std::uint32_t id) const { return id - 1 < objects_.size() && objects_[id - 1].bytes != 0; }

  std::string_view tier_;
  std::vector<Object> objects_;  // index: id - 1; the element of a freed object stays, but is empty
};

}  // namespace zinc_rt::ring
