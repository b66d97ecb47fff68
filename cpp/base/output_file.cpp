#include "base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace zinc_rt {

Result<OutputFile> OutputFile::create(std::string path) {
  OutputFile file;
  file.path_ = std::move(path);
  file.fd_ = ::open(file.part_path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file.fd_ < 0) {
    const auto code = errno == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable;
    return fail(code, "[output_file] cannot create {}: {}", file.part_path(), std::strerror(errno));
  }
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept {
  *this = std::move(other);
}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(n_bytes_, other.n_bytes_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(part_path().c_str());
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ::ssize_t n = ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return fail(StatusCode::kUnavailable, "[output_file] {}: {} bytes written, {} left: {}", path_, n_bytes_,
                  bytes.size(), std::strerror(errno));
    n_bytes_ += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status OutputFile::pad_to(std::uint64_t alignment) {
  constexpr std::array<std::byte, 4096> kZeros{};
  for (std::uint64_t left = (alignment - n_bytes_ % alignment) % alignment; left > 0;) {
    const std::uint64_t n = std::min<std::uint64_t>(left, kZeros.size());
    ZRT_CHECK_OK(write(std::span(kZeros).first(n)));
    left -= n;
  }
  return {};
}

Status OutputFile::commit() {
  const bool synced = ::fsync(fd_) == 0;
  const int error = errno;
  const bool closed = ::close(std::exchange(fd_, -1)) == 0;
  if (!synced || !closed || std::rename(part_path().c_str(), path_.c_str()) != 0) {
    const int why = synced ? errno : error;
    ::unlink(part_path().c_str());
    return fail(StatusCode::kUnavailable, "[output_file] cannot finish {}: {}", path_, std::strerror(why));
  }
  return {};
}

}  // namespace zinc_rt
