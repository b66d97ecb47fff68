// Releases the GIL during calls of the engine, in a way that is safe even while the interpreter ends.
// Thread rule: any thread.
#pragma once

#include <pybind11/pybind11.h>

namespace zinc_rt::python {

// Releases the GIL while the object exists. REQUIRES: the GIL. After end_waits(), only the thread that called it
// returns from here; others wait for ever. Otherwise the ending interpreter would unwind the stack of each thread that
// asks for the GIL, which C++ treats as an error and aborts the process.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

// Counts a thread that works for Python although Python did not start it. end_waits() waits for such threads.
class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
};

// Called when the interpreter is about to end: waits for the threads that are about to take the GIL again and for
// workers, and stops later ones.
// REQUIRES: the GIL; called by the thread that ends the interpreter.
void end_waits();
// Called in a forked child: forgets the parent's threads that were about to take the GIL.
void forget_waits();

}  // namespace zinc_rt::python
