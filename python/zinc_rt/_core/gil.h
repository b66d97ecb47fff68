// How calls let go of the GIL, and what becomes of them when the interpreter ends.
// Thread rule: any thread.
#pragma once

#include <pybind11/pybind11.h>

namespace zinc_rt::python {

// Lets go of the GIL while it lives. REQUIRES: the GIL. From end_waits() on, other threads than the one that called it
// do not come back from here: while the interpreter ends it unwinds the stack of each thread that asks for the GIL, and
// C++ takes that for an error and aborts the process.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

// The interpreter is about to end: waits for the threads that are on their way back to Python, and keeps later ones.
// REQUIRES: the GIL, and the thread that ends the interpreter.
void end_waits();

}  // namespace zinc_rt::python
