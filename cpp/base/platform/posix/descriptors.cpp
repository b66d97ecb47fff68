#include "base/platform/descriptors.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/platform/posix/descriptor_folder.h"
#include "base/read_number.h"

namespace zinc_rt {

int descriptor_of(const std::string& given) {
  std::filesystem::path path = given;
  constexpr int kMaxLinks = 40;
  const auto own = descriptor_folder();
  std::error_code error;
  for (int i = 0; i < kMaxLinks; ++i) {
    if (std::filesystem::canonical(path.has_parent_path() ? path.parent_path() : ".", error) == own) {
      int fd = -1;
      const std::string name = path.filename();
      return read_number(name, fd) ? fd : -1;
    }
    if (!std::filesystem::is_symlink(path, error)) return -1;
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return -1;
}

int duplicate_descriptor(int fd) {
  return ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

bool make_owner_only(int fd) {
  return ::fchmod(fd, 0600) == 0;
}

}  // namespace zinc_rt
