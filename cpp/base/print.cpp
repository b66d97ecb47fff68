#include "base/print.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>

#include "base/error.h"
#include "base/platform/output_stream.h"

namespace zinc_rt {
namespace {

constexpr int kPatienceMs = 1000;

std::atomic<int> lost_why{0};  // errno of the first failed write to standard output; 0 if none failed
std::atomic<bool> is_waiting_limited{false}, is_stuck{false};

// Discards the text in the buffer after a failed write. A later flush would print it in the middle of other text, or
// fail again.
void drop_buffered() {
  discard_buffer(stdout);
  std::clearerr(stdout);
}

void lose(int why) {
  int nothing = 0;
  lost_why.compare_exchange_strong(nothing, why == 0 ? EIO : why);
  drop_buffered();
}

// Waits until standard error can be written. Returns false if the message has waited for its full time.
bool is_ready() {
  pollfd look{STDERR_FILENO, POLLOUT, 0};
  const bool is_limited = is_waiting_limited;
  int n = 0;
  do n = ::poll(&look, 1, !is_limited ? -1 : is_stuck ? 0 : kPatienceMs);
  while (n < 0 && errno == EINTR);
  if (is_limited) is_stuck = n == 0;
  return n != 0;
}

}  // namespace

void write_out(std::string_view text) noexcept {
  const PipeSignalBlock guard;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size()) lose(errno);
}

void write_err(std::string_view text) noexcept {
  const PipeSignalBlock guard;
  while (!text.empty() && is_ready()) {
    const auto n = ::write(STDERR_FILENO, text.data(), std::min(pipe_bytes(), text.size()));
    if (n < 0 && errno != EINTR && errno != EAGAIN) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void announce(std::string_view text) noexcept {
  const PipeSignalBlock guard;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() || std::fflush(stdout) != 0) drop_buffered();
}

void vprint(void (*write)(std::string_view) noexcept, fmt::string_view format, fmt::format_args args) noexcept {
  try {
    write(fmt::vformat(format, args));
  } catch (const std::exception&) {  // formatting failed, because no memory is left
    write({format.data(), format.size()});
  }
}

Status output_status() {
  const PipeSignalBlock guard;
  errno = 0;
  if (std::fflush(stdout) != 0) lose(errno);
  if (std::ferror(stdout) != 0) lose(EIO);
  if (const int why = lost_why; why != 0)
    return fail(StatusCode::kUnavailable, "cannot write to standard output: {}", std::generic_category().message(why));
  return {};
}

Status print_now(std::string_view text) {
  write_out(text);
  return output_status();
}

bool is_reader_gone() {
  return lost_why == EPIPE;
}

void limit_waiting_of_messages() {
  is_waiting_limited = true;
}

void hold_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // /dev/null gets the number fd, because open() returns the lowest free number.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

}  // namespace zinc_rt
