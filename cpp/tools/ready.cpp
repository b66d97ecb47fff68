#include "tools/ready.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace zinc_rt::tools {

Status check_ready_fd(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags != -1 && (flags & O_ACCMODE) != O_RDONLY) return {};
  return fail(StatusCode::kInvalidArgument, "[serve] --ready-fd {}: {}, one open for writing wanted", fd,
              flags == -1 ? "there is no such descriptor" : "it is open for reading alone");
}

Status tell_ready(int fd, const std::string& line) {
  std::string_view rest = line;
  Status done;
  while (!rest.empty() && done) {
    const auto n = ::write(fd, rest.data(), rest.size());
    if (n >= 0)
      rest.remove_prefix(static_cast<std::size_t>(n));
    else if (errno != EINTR)
      done = fail(StatusCode::kUnavailable, "[serve] --ready-fd {}: {} of {} bytes could not be written: {}", fd,
                  rest.size(), line.size(), std::strerror(errno));
  }
  ::close(fd);
  return done;
}

}  // namespace zinc_rt::tools
