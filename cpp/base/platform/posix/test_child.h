// The parts of survives() (base/platform/processor_access.h) that do not depend on how a system makes the child
// process.
#pragma once

#include <sys/types.h>

namespace zinc_rt {

// Runs the test and ends the calling process, with status 0 if it returned true. Signals of faults kill the process
// without a core file.
[[noreturn]] void end_by_test(bool (*test)());
// Waits for a child that calls end_by_test(). Returns whether it ended with status 0. wait_options: as for waitpid().
bool has_passed(pid_t child, int wait_options);

}  // namespace zinc_rt
