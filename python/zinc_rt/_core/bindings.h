// The files of the Python extension share these functions: for exceptions, the GIL, keyword arguments, and the binding
// of classes.
#pragma once

#include <pybind11/pybind11.h>

#include "gil.h"
#include "held.h"
#include "values.h"
#include "zinc_rt/status.h"

namespace zinc_rt::python {

namespace py = pybind11;

// Raises an exception. The error's code decides which class of zinc_rt.errors it has.
[[noreturn]] void raise(const Error& error);

// Returns the value, or raises the exception.
template <class T>
T unwrap(Result<T>&& result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// is_processing() returns whether a logits processor calls from the step thread. It must not call the engine, because
// the step thread would then wait for itself. raise_processing() raises the exception for such a call.
bool is_processing();
[[noreturn]] void raise_processing();

// Calls the engine with the GIL released. Returns the result's value, or raises its error.
template <class Call>
auto without_gil(Call&& call) {
  if (is_processing()) raise_processing();
  auto result = [&] {
    const WithoutGil release;
    return call();
  }();
  return unwrap(std::move(result));
}

// A waiting call checks for Ctrl-C this often.
inline constexpr double kSignalPollMs = 100;
inline void check_signals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

py::object from_json(const std::string& text);                   // json.loads
std::string to_json(const char* name, const py::handle& value);  // json.dumps; raises InvalidArgument with the name

// Reads the keyword arguments of a call one by one into fields. An argument that is None leaves the field's default.
class Keywords {
 public:
  explicit Keywords(const py::kwargs& kwargs) : kwargs_(kwargs) {}

  template <class T>
  void take(const char* name, T& field) {
    if (const auto value = find(name); !value.is_none()) field = value.cast<T>();
  }
  py::object find(const char* name);  // None if the argument is not given
  void check_all_taken() const;       // fails for a name that the stub has but no call of find() reads

 private:
  const py::kwargs& kwargs_;
  py::set taken_;
};

// Returns the request that the arguments of generate(), stream() or submit() describe.
Request make_request(const py::object& prompt, const py::object& messages, const py::object& token_ids,
                     const py::kwargs& kwargs);

std::string describe_request_fields();

// Returns a logits processor that calls a Python function, or each function of a list in order.
LogitsProcessor python_processor(const py::object& function_or_list);
// Defines __reduce__ of a class that holds native state, so that pickling such an object raises an exception.
template <class Class>
void forbid_pickle(Class& cls) {
  cls.def("__reduce__", [](const py::object& self) -> py::object {
    throw py::type_error("cannot pickle " + py::str(py::type::of(self).attr("__name__")).cast<std::string>() +
                         ": it holds a running engine's state; open it again instead");
  });
}

void bind_engine(py::module_& m);
void bind_placement(py::module_& m);
void bind_session(py::module_& m);
void bind_tenant(py::module_& m);
void bind_text(py::module_& m);
void bind_validate(py::module_& m);

}  // namespace zinc_rt::python
