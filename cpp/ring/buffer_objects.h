// The buffer objects that a ring has created, found by id. The template parameter is how the ring stores an object's
// memory. An id is an index into a list, so resolving a binding is one look-up. Ids are not reused.
// Thread rule: as Ring.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ring/packet.h"

namespace zinc_rt::ring {

// Object has a member `bytes`, which is 0 if the entry is free.
template <class Object>
class BufferObjects {
 public:
  // Whether a binding is absent or lies within its buffer object. If neither holds, refuse() makes the error:
  // kInvalidArgument.
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
  // `tier` begins messages.
  explicit BufferObjects(std::string_view tier) : tier_(tier) {}

  Buffer add(Object object, Heap heap) {
    objects_.push_back(std::move(object));
    return {static_cast<std::uint32_t>(objects_.size()), objects_.back().bytes, heap};
  }
  // Null for an id that was never given out or whose object was freed.
  Object* find(std::uint32_t id) { return is_there(id) ? &objects_[id - 1] : nullptr; }
  const Object* find(std::uint32_t id) const { return is_there(id) ? &objects_[id - 1] : nullptr; }
  std::unexpected<Error> does_not_exist(std::uint32_t id) const {
    return fail(StatusCode::kInvalidArgument, "[{}] buffer object {} does not exist", tier_, id);
  }
  // REQUIRES: the object exists.
  Object& at(std::uint32_t id) { return objects_[id - 1]; }
  const Object& at(std::uint32_t id) const { return objects_[id - 1]; }
  std::uint32_t last_id() const { return static_cast<std::uint32_t>(objects_.size()); }

 private:
  bool is_there(std::uint32_t id) const { return id - 1 < objects_.size() && objects_[id - 1].bytes != 0; }

  std::string_view tier_;
  std::vector<Object> objects_;  // id - 1; a freed one stays as an empty entry
};

}  // namespace zinc_rt::ring
