// What the binding files share.
#pragma once

#include <pybind11/pybind11.h>

#include "zinc_rt/status.h"

namespace zinc_rt::python {

namespace py = pybind11;

// Raises the class of zinc_rt.errors that belongs to the error's code.
[[noreturn]] void raise(const Error& error);

// The value, or the exception.
template <class T>
T unwrap(Result<T>&& result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

py::object from_json(const std::string& text);  // json.loads
std::string to_json(const py::handle& value);   // json.dumps

// __reduce__ of classes that hold native state.
template <class Class>
void forbid_pickle(Class& cls) {
  cls.def("__reduce__", [](const py::object& self) -> py::object {
    throw py::type_error("cannot pickle " + py::str(py::type::of(self).attr("__name__")).cast<std::string>() +
                         ": it holds a running engine's state; open it again instead");
  });
}

void bind_engine(py::module_& m);
void bind_session(py::module_& m);
void bind_text(py::module_& m);
void bind_validate(py::module_& m);

}  // namespace zinc_rt::python
