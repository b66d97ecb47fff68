// Calls into Python on threads of the engine. The interpreter's end waits for calls that are running, as it does for
// Python's own threads; no call is made after it.
// Thread rule: any thread.
#pragma once

#include <pybind11/pybind11.h>

namespace zinc_rt::python {

bool enter_call();  // false: the interpreter has ended
void leave_call();
bool end_calls(double timeout_ms);  // no later call is made; returns whether none is running
void forget_calls();                // in a forked child: those that were under way in the parent

// Calls `f` with the GIL; false: the interpreter has ended.
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
