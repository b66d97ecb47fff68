#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/platform/descriptors.h"

namespace zinc_rt {
namespace {

// Returns whether the path is a device, pipe or other special file. Such a file must not be replaced by a rename.
bool is_written_directly(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

// Returns the path to which links lead, even if no file exists there yet.
std::string target_of(const std::string& path) {
  constexpr int kMaxLinks = 40;  // Linux follows at most this many links
  std::string target = path;
  for (int i = 0; i < kMaxLinks; ++i) {
    auto next = link_target(target);
    if (next.empty()) break;
    target = std::move(next);
  }
  return target;
}

}  // namespace

Result<OutputFile> OutputFile::create(std::string path, FileAccess access) {
  OutputFile file;
  // The descriptor is duplicated, because opening the path would start to write at the file's first byte, over existing
  // data.
  if (const int fd = descriptor_of(path); fd >= 0) {
    file.fd_ = duplicate_descriptor(fd);
    if (file.fd_ < 0)
      return fail(StatusCode::kUnavailable, "[output_file] cannot write {}: {}", path, std::strerror(errno));
    file.path_ = std::move(path);
    return file;
  }
  if (is_written_directly(path)) {
    file.path_ = std::move(path);
  } else {
    file.path_ = target_of(path);
    file.part_path_ = file.path_ + ".part";
  }
  const auto& opened = file.part_path_.empty() ? file.path_ : file.part_path_;
  const bool is_private = access == FileAccess::kOwnerOnly && !file.part_path_.empty();
  file.fd_ = ::open(opened.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, is_private ? 0600 : 0666);
  if (file.fd_ < 0 || (is_private && !make_owner_only(file.fd_))) {
    const auto code = errno == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable;
    return fail(code, "[output_file] cannot create {}: {}", opened, std::strerror(errno));
  }
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept {
  *this = std::move(other);
}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(part_path_, other.part_path_);
  std::swap(fd_, other.fd_);
  std::swap(n_bytes_, other.n_bytes_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!part_path_.empty()) ::unlink(part_path_.c_str());
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
  if (part_path_.empty()) {
    if (::close(std::exchange(fd_, -1)) != 0)
      return fail(StatusCode::kUnavailable, "[output_file] cannot finish {}: {}", path_, std::strerror(errno));
    return {};
  }
  const bool synced = ::fsync(fd_) == 0;
  const int error = errno;
  const bool closed = ::close(std::exchange(fd_, -1)) == 0;
  if (!synced || !closed || std::rename(part_path_.c_str(), path_.c_str()) != 0) {
    const int why = synced ? errno : error;
    ::unlink(part_path_.c_str());
    return fail(StatusCode::kUnavailable, "[output_file] cannot finish {}: {}", path_, std::strerror(why));
  }
  return {};
}

}  // namespace zinc_rt
