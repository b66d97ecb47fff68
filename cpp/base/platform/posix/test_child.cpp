#include "base/platform/posix/test_child.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace zinc_rt {

void end_by_test(bool (*test)()) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int deadly : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) signal(deadly, SIG_DFL);
  _exit(test() ? 0 : 1);
}

bool has_passed(pid_t child, int wait_options) {
  int status = 0;
  while (waitpid(child, &status, wait_options) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace zinc_rt
