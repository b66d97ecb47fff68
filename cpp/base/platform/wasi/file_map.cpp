#include "base/platform/file_map.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace zinc_rt {
namespace {

constexpr std::size_t kAlignment = 4096;     // what a map would have
constexpr std::size_t kPiece = 1024 * 1024;  // hosts have failed at reading hundreds of megabytes in one call

}  // namespace

int FileMap::open(int fd, std::size_t size) {
  if (size == 0) return 0;
  if (size > SIZE_MAX - kAlignment) return ENOMEM;
  auto* data =
      static_cast<std::byte*>(std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment));
  if (data == nullptr) return ENOMEM;
  for (std::size_t done = 0; done < size;) {
    const auto n = ::pread(fd, data + done, std::min(size - done, kPiece), static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : EIO;  // EIO: the file became shorter
      std::free(data);
      return error;
    }
    done += static_cast<std::size_t>(n);
  }
  data_ = data;
  size_ = size;
  return 0;
}

FileMap::~FileMap() {
  std::free(const_cast<std::byte*>(data_));
}

bool FileMap::lost_pages() const {
  return false;
}

void release_pages(std::span<const std::byte>) {}

}  // namespace zinc_rt
