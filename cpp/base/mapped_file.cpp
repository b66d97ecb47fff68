#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"

namespace zinc_rt {

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK is set because opening a fifo would otherwise wait until somebody writes to it. It changes nothing for
  // files.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const auto code = errno == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable;
    return fail(code, "[mapped_file] cannot open {}: {}", path, std::strerror(errno));
  }
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return fail(StatusCode::kInvalidArgument, "[mapped_file] {} is not a regular file", path);
  }
  MappedFile file;
  file.fd_ = fd;
  file.path_ = path;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > std::numeric_limits<std::size_t>::max())
    return fail(StatusCode::kUnavailable, "[mapped_file] cannot map {}: {} bytes, {} can be addressed", path, size,
                std::numeric_limits<std::size_t>::max());
  if (const int error = file.map_.open(fd, static_cast<std::size_t>(size)); error != 0)
    return fail(StatusCode::kUnavailable, "[mapped_file] cannot map {}: {}", path, std::strerror(error));
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(map_, other.map_);
  std::swap(fd_, other.fd_);
  return *this;
}

Status MappedFile::is_whole() const {
  if (fd_ < 0) return {};
  struct stat info{};
  const std::size_t size = map_.bytes().size();
  const bool is_known = ::fstat(fd_, &info) == 0;
  const auto there = is_known ? static_cast<std::size_t>(info.st_size) : size;
  if (there >= size && !map_.lost_pages()) return {};
  return fail(StatusCode::kCorrupt, "[mapped_file] {} was cut while it was in use: {} bytes were there, {} are now",
              path_, size, there);
}

MappedFile::~MappedFile() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace zinc_rt
