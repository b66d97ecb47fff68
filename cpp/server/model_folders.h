// Which files the API may load as models: those in folders that were named for it.
// Thread rule: any thread.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "server/api_error.h"

namespace zinc_rt::server {

class ModelFolders {
 public:
  using Paths = std::vector<std::filesystem::path>;
  // Behind all links. Errors: kNotFound for one that is no folder.
  static Result<Paths> find(const std::vector<std::string>& folders);
  void set(Paths folders);  // from now on these, which find() gave
  // The file or folder itself, behind all links. Errors, of `path`: 400 for what can be no model, 403 outside of the
  // folders or not readable, 404 for what is not there.
  ApiResult<std::string> resolve(const std::string& path) const;

 private:
  bool has(const std::filesystem::path& canonical) const;

  mutable std::mutex mutex_;
  Paths folders_;
};

// Those that the files lie in, by their own names and behind links.
std::vector<std::string> folders_of(const std::vector<std::string>& paths);

}  // namespace zinc_rt::server
