#include "server/batches/line_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace zinc_rt::server {

LineFile::~LineFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::unexpected<Error> LineFile::failed(const char* what) const {
  return fail(StatusCode::kUnavailable, "[batch] cannot {} {}: {}", what, path_, std::strerror(errno));
}

Status LineFile::open(const std::string& path, std::string_view lines_begin, const Each& each, FileAccess access) {
  path_ = path;
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return fail(StatusCode::kUnavailable, "[batch] {} is no plain file: its lines could not be found again", path);
  const bool is_private = access == FileAccess::kOwnerOnly;
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, is_private ? 0600 : 0666);
  if (fd_ < 0) return failed("open");
  if (is_private && ::fchmod(fd_, 0600) != 0) return failed("set the rights of");
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0)
    return fail(StatusCode::kUnavailable, "[batch] {} is being written by another process", path);
  return read_lines(lines_begin, each);
}

Status LineFile::read_lines(std::string_view lines_begin, const Each& each) {
  std::vector<char> piece(1 << 20);
  std::string torn;  // the beginning of a line whose end has not been read yet
  std::uint64_t n_whole = 0, number = 0;
  for (;;) {
    const auto n = ::read(fd_, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("read");
    if (n == 0) break;
    for (std::string_view rest(piece.data(), static_cast<std::size_t>(n)); !rest.empty();) {
      const auto end = rest.find('\n');
      torn += rest.substr(0, end);
      if (end == std::string_view::npos) break;
      rest.remove_prefix(end + 1);
      ZRT_CHECK_OK(each(torn, ++number));
      n_whole += torn.size() + 1;
      torn.clear();
    }
  }
  if (!std::string_view(torn).starts_with(lines_begin.substr(0, torn.size())))
    return fail(StatusCode::kInvalidArgument,
                "[batch] {}: its last line has no end and is no line of a batch's output; name another file", path_);
  if (!torn.empty() && ::ftruncate(fd_, static_cast<off_t>(n_whole)) != 0) return failed("cut the torn last line of");
  n_bytes_ = n_whole;
  return {};
}

Status LineFile::append(std::string_view line) {
  std::string whole(line);
  whole += '\n';
  const std::uint64_t begin = n_bytes_;
  for (std::size_t done = 0; done < whole.size();) {
    const auto n = ::pwrite(fd_, whole.data() + done, whole.size() - done, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int why = errno;
      // If the truncation fails, the next open() repeats it.
      if (done > 0 && ::ftruncate(fd_, static_cast<off_t>(begin)) != 0) errno = why;
      errno = why;
      return failed("write");
    }
    done += static_cast<std::size_t>(n);
  }
  n_bytes_ = begin + whole.size();
  return {};
}

Status LineFile::sync() {
  if (::fsync(fd_) != 0) return failed("write to disk");
  return {};
}

}  // namespace zinc_rt::server
