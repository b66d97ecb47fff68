// ModelFolders restricts the files that the API may load as models to certain folders.
// Thread rule: any thread.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "server/api/api_error.h"

namespace zinc_rt::server {

class ModelFolders {
 public:
  using Paths = std::vector<std::filesystem::path>;
  // Returns the folders with all links resolved. Errors: kNotFound for a path that is not a folder.
  static Result<Paths> find(const std::vector<std::string>& folders);
  void set(Paths folders);  // sets the allowed folders to `folders`, which find() returned
  // Returns the path of the file or folder with all links resolved. Errors: 400 for a path that cannot be a model; 403
  // for a path outside the folders or an unreadable path; 404 for a path that does not exist. `field` is the name of
  // the request's member that holds the path.
  ApiResult<std::string> resolve(const std::string& path, const char* field = "path") const;

 private:
  bool has(const std::filesystem::path& canonical) const;

  mutable std::mutex mutex_;
  Paths folders_;
};

// Returns the folders that contain these files, both as named and with links resolved.
std::vector<std::string> folders_of(const std::vector<std::string>& paths);

}  // namespace zinc_rt::server
