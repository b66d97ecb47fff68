// Converts the engine's errors to Python exceptions. No other file does.
#include "bindings.h"

namespace zinc_rt::python {

void raise(const Error& error) {
  const py::gil_scoped_acquire acquire;
  const char* name = "Internal";
  switch (error.code) {
    case StatusCode::kInvalidArgument: name = "InvalidArgument"; break;
    case StatusCode::kNotFound: name = "NotFound"; break;
    case StatusCode::kExhausted: name = "Exhausted"; break;
    case StatusCode::kUnavailable: name = "Unavailable"; break;
    case StatusCode::kCorrupt: name = "Corrupt"; break;
    case StatusCode::kCancelled:  // does not occur: Python cannot take a call back before it returns
    case StatusCode::kInternal: break;
  }
  const py::object type = py::module_::import("zinc_rt.errors").attr(name);
  // A message may quote bytes of files and clients, which need not be UTF-8.
  const py::object message = py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(error.message.data(), static_cast<Py_ssize_t>(error.message.size()), "replace"));
  const py::object exception =
      error.code == StatusCode::kExhausted ? type(message, error.retry_after_s) : type(message);
  exception.attr("reason") = to_string(error.reason);
  exception.attr("field") = error.field;
  PyErr_SetObject(type.ptr(), exception.ptr());
  throw py::error_already_set();
}

py::object from_json(const std::string& text) {
  return py::module_::import("json").attr("loads")(text);
}

std::string to_json(const char* name, const py::handle& value) {
  try {
    return py::module_::import("json").attr("dumps")(value, py::arg("allow_nan") = false).cast<std::string>();
  } catch (py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError) && !error.matches(PyExc_RecursionError))
      throw;
    const auto why = py::str(error.value()).cast<std::string>();
    raise({StatusCode::kInvalidArgument, std::string(name) + " cannot be written as JSON: " + why, 0});
  }
}

}  // namespace zinc_rt::python
