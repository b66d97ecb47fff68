// Calls Python functions on threads of the engine. When the interpreter ends, it first waits for running calls, as it
// does for Python's own threads. After that no call is made.
// Thread rule: any thread.
#pragma once

#include <pybind11/pybind11.h>

namespace zinc_rt::python {

bool enter_call();  // returns false if the interpreter has ended
void leave_call();
bool end_calls(double timeout_ms);  // allows no further calls; returns true if none is running after this time
void forget_calls();                // in a forked child: forgets calls that were running in the parent

// Calls `f` with the GIL. Returns false if the interpreter has ended.
template <class F>
bool in_python(F&& f) {
  if (!enter_call()) return false;
  struct Leave {
    ~Leave() { leave_call(); }
  } leave;
  const pybind11::gil_scoped_acquire acquire;
  f();
  return true;
}

}  // namespace zinc_rt::python
