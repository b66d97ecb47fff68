#include "base/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>

namespace zinc_rt {

bool is_there(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

bool is_folder(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string link_target(const std::string& path) {
  char text[PATH_MAX];
  const auto n = ::readlink(path.c_str(), text, sizeof text);
  if (n <= 0) return {};
  const std::string link(text, static_cast<std::size_t>(n));
  if (link.starts_with('/')) return link;
  return path.substr(0, path.find_last_of('/') + 1) + link;  // no slash: npos + 1 is 0
}

std::string absolute_path(const std::string& path) {
  char folder[PATH_MAX];
  if (path.starts_with('/') || ::getcwd(folder, sizeof folder) == nullptr) return path;
  const std::string here = folder;
  return here.ends_with('/') ? here + path : here + "/" + path;
}

}  // namespace zinc_rt
