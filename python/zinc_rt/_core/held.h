// Protects Python objects that hold native state in a process that was forked. A forked child has none of the engine's
// threads, so a call on such an object would wait for ever. In the child each call raises Unavailable, and no native
// state is destroyed. Thread rule: any thread.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "gil.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::python {

unsigned n_forks();                // forks between the process that loaded the module and this one
void count_forks();                // called once, when the module is loaded
[[noreturn]] void raise_forked();  // REQUIRES: the GIL

// Deletes a native object with the GIL released, so that other Python threads run meanwhile. Destroying the last handle
// of an engine joins its threads, which may take as long as a step.
struct DeleteWithoutGil {
  unsigned born = n_forks();

  template <class T>
  void operator()(T* object) const {
    if (born != n_forks()) return;
    const WithoutGil release;
    delete object;
  }
};
template <class T>
using Held = std::unique_ptr<T, DeleteWithoutGil>;

// Returns whether the object was created before a fork, in the parent. REQUIRES: `object` is of T's class.
template <class T>
bool is_of_parent(pybind11::handle object) {
  if (n_forks() == 0) return false;
  auto* const instance = reinterpret_cast<pybind11::detail::instance*>(object.ptr());
  const auto held = instance->get_value_and_holder();
  return held.holder_constructed() && held.holder<Held<T>>().get_deleter().born != n_forks();
}

// Converts a Python object to a T&. Raises Unavailable in a forked child.
template <class T>
struct LiveCaster : pybind11::detail::type_caster_base<T> {
  bool load(pybind11::handle source, bool convert) {
    if (!pybind11::detail::type_caster_base<T>::load(source, convert)) return false;
    if (!source.is_none() && is_of_parent<T>(source)) raise_forked();
    return true;
  }
};

// Wraps `call` so that it does nothing in a forked child. Used for __exit__.
template <class T, class Call>
auto unless_forked(Call call) {
  return [call](const pybind11::object& self, const pybind11::args&) {
    if (!is_of_parent<T>(self)) call(self.cast<T&>());
  };
}

}  // namespace zinc_rt::python

namespace pybind11::detail {

template <>
class type_caster<zinc_rt::Engine> : public zinc_rt::python::LiveCaster<zinc_rt::Engine> {};
template <>
class type_caster<zinc_rt::Tenant> : public zinc_rt::python::LiveCaster<zinc_rt::Tenant> {};
template <>
class type_caster<zinc_rt::Session> : public zinc_rt::python::LiveCaster<zinc_rt::Session> {};
template <>
class type_caster<zinc_rt::Stream> : public zinc_rt::python::LiveCaster<zinc_rt::Stream> {};
template <>
class type_caster<zinc_rt::RequestHandle> : public zinc_rt::python::LiveCaster<zinc_rt::RequestHandle> {};

}  // namespace pybind11::detail
