#include "server/models/model_folders.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace zinc_rt::server {
namespace {

namespace fs = std::filesystem;

std::unexpected<ApiError> refuse(int status, const char* field, const std::string& what) {
  return std::unexpected(make_error(status, fmt::format("[models] {}: {}", field, what), field));
}

std::unexpected<ApiError> refuse(const std::error_code& why, const char* field, const std::string& path) {
  const bool is_absent = why == std::errc::no_such_file_or_directory || why == std::errc::not_a_directory;
  const bool is_closed = why == std::errc::permission_denied;
  return refuse(is_absent ? 404 : is_closed ? 403 : 400, field, fmt::format("{}: {}", path, why.message()));
}

}  // namespace

Result<ModelFolders::Paths> ModelFolders::find(const std::vector<std::string>& folders) {
  Paths resolved;
  for (const auto& folder : folders) {
    std::error_code error;
    auto canonical = fs::canonical(folder, error);
    if (error || !fs::is_directory(canonical, error))
      return fail(StatusCode::kNotFound, "[models] {} is no folder (model_dirs)", folder);
    resolved.push_back(std::move(canonical));
  }
  return resolved;
}

void ModelFolders::set(Paths folders) {
  const std::lock_guard lock(mutex_);
  folders_ = std::move(folders);
}

bool ModelFolders::has(const fs::path& canonical) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      folders_, [&](const fs::path& folder) { return std::ranges::mismatch(folder, canonical).in1 == folder.end(); });
}

ApiResult<std::string> ModelFolders::resolve(const std::string& path, const char* field) const {
  if (path.empty()) return refuse(400, field, "it is empty");
  if (std::ranges::any_of(path, [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
    return refuse(400, field, "it has a control character");
  std::error_code error;
  // If the path does not exist, only the part of it that exists is resolved. "Outside of the folders" is checked before
  // "does not exist", so that errors reveal nothing about files outside.
  const auto canonical = fs::weakly_canonical(path, error);
  if (error) return refuse(error, field, path);
  if (!has(canonical)) return refuse(403, field, path + " is in none of the folders of models (model_dirs)");
  const auto kind = fs::status(canonical, error).type();
  if (error) return refuse(error, field, path);
  if (::access(canonical.c_str(), R_OK) != 0)
    return refuse(std::error_code(errno, std::generic_category()), field, path);
  if (kind == fs::file_type::regular) return canonical.string();
  if (kind != fs::file_type::directory) return refuse(400, field, path + " is neither a file nor a folder");
  // The files in an MLC folder are opened later by their names. So no link in the folder may lead outside the allowed
  // folders.
  for (fs::directory_iterator at(canonical, error), end; !error && at != end; at.increment(error)) {
    const auto file = fs::weakly_canonical(at->path(), error);
    if (error) return refuse(error, field, at->path().string());
    if (!has(file)) return refuse(403, field, at->path().string() + " leads out of the folders of models (model_dirs)");
  }
  if (error) return refuse(error, field, path);
  return canonical.string();
}

std::vector<std::string> folders_of(const std::vector<std::string>& paths) {
  std::vector<std::string> folders;
  for (const auto& path : paths) {
    std::error_code error;
    for (const auto& form : {fs::absolute(path, error), fs::canonical(path, error)}) {
      const auto folder = form.lexically_normal().parent_path();
      if (fs::is_directory(folder, error)) folders.push_back(folder.string());
    }
  }
  return folders;
}

}  // namespace zinc_rt::server
