// What libamd_sim.so gives a program in place of the system's: with LD_PRELOAD, or linked, it finds /dev/kfd,
// /dev/dri/renderD128, a node of the topology and the module's parameters (card.h has the environment).
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

#include "amd_sim/drivers.h"

namespace amd_sim {

int text_file(const std::string& content) {
  const int fd = memfd_create("sysfs", 0);
  if (write(fd, content.data(), content.size()) < 0) return -1;
  lseek(fd, 0, SEEK_SET);
  return fd;
}

namespace {

int open_any(const char* path, int flags, mode_t mode) {
  if (const auto fd = kfd_driver::open(path)) return *fd;
  if (const auto fd = drm_driver::open(path)) return *fd;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

}  // namespace
}  // namespace amd_sim

extern "C" {
int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(list, int)) : mode_t{0};
  va_end(list);
  return amd_sim::open_any(path, flags, mode);
}
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
// What open is where the compiler checks its arguments.
int __open_2(const char* path, int flags) {
  return amd_sim::open_any(path, flags, 0);
}
int __open64_2(const char* path, int flags) __attribute__((alias("__open_2")));
int close(int fd) {
  amd_sim::kfd_driver::close(fd);
  amd_sim::drm_driver::close(fd);
  return static_cast<int>(syscall(SYS_close, fd));
}
int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void* arg = va_arg(list, void*);
  va_end(list);
  const auto number = static_cast<unsigned>(request);
  const bool is_kfd = amd_sim::kfd_driver::has(fd);
  if (!is_kfd && !amd_sim::drm_driver::has(fd)) return static_cast<int>(syscall(SYS_ioctl, fd, request, arg));
  const int error = is_kfd ? amd_sim::kfd_driver::control(number, arg) : amd_sim::drm_driver::control(fd, number, arg);
  if (error == 0) return 0;
  errno = error;
  return -1;
}
}
