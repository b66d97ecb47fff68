#include "server/batches/stored_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "base/output_file.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

namespace fs = std::filesystem;

ApiError no_file(const std::string& id, const char* param) {
  return make_error(404,
                    fmt::format("[files] there is no \"{}\" of this tenant; files are kept for {} days",
                                id.substr(0, 100), StoredFiles::kKept_s / 86400),
                    param);
}

}  // namespace

Status StoredFiles::open(const std::string& folder) {
  folder_ = folder;
  if (folder.empty()) return {};
  std::error_code failure;
  fs::create_directories(folder, failure);
  // Only the owner of the folder may read the tenants' texts.
  if (!failure) fs::permissions(folder, fs::perms::owner_all, failure);
  if (failure)
    return fail(StatusCode::kUnavailable,
                "[files] {} cannot be made: {}; another --state file, or --state none, may do", folder,
                failure.message());
  return {};
}

ApiResult<void> StoredFiles::expect_kept() const {
  if (!folder_.empty()) return {};
  auto error =
      make_error(501,
                 "[files] this server keeps nothing (--state none): /v1/files and /v1/batches need --state FILE, "
                 "or state in the configuration; `zinc-rt run-batch` needs no server");
  error.code = "not_implemented";
  return std::unexpected(std::move(error));
}

ApiResult<std::uint64_t> StoredFiles::room_of(const std::string& tenant) const {
  ZRT_CHECK_OK(expect_kept());
  const std::lock_guard lock(mutex_);
  return room_beside_growing(tenant);
}

ApiResult<std::uint64_t> StoredFiles::room_beside_growing(const std::string& tenant) const {
  std::uint64_t n_bytes = 0;
  for (const char* kind : {kFileKind, kBatchKind}) {
    const auto sum = store_.objects().sum(kind, tenant);
    if (!sum) return std::unexpected(to_api_error(sum.error()));
    if (kind == kFileKind && sum->n_objects >= kMostFiles) return 0;
    n_bytes += sum->n_bytes;
  }
  if (const auto growing = growing_.find(tenant); growing != growing_.end())
    for (const auto& [id, n] : growing->second) n_bytes += n;
  return kMostBytes - std::min(n_bytes, kMostBytes);
}

bool StoredFiles::note_growing(const std::string& tenant, const std::string& id, std::uint64_t n_bytes) {
  const std::lock_guard lock(mutex_);
  auto& growing = growing_[tenant];
  if (n_bytes > 0)
    growing[id] = n_bytes;
  else
    growing.erase(id);
  if (growing.empty()) growing_.erase(tenant);
  if (n_bytes == 0) return true;
  const auto room = room_beside_growing(tenant);
  return !room || *room > 0;  // if the state store fails now, the check is repeated with the next bytes
}

ApiResult<Json> StoredFiles::upload(const std::string& tenant, const std::string& name, std::string_view content) {
  ZRT_CHECK_OK(expect_kept());
  const auto refused = [](const std::string& what) {
    return std::unexpected(make_error(400, "[files] file: " + what, "file"));
  };
  if (content.size() > kMostUploadBytes)
    return refused(fmt::format("{} bytes are given, {} allowed", content.size(), kMostUploadBytes));
  const auto id = "file-" + new_id();
  {
    const std::lock_guard lock(mutex_);
    ZRT_TRY(const auto room, room_beside_growing(tenant));
    if (content.size() > room)
      return refused(
          fmt::format("{} bytes are given, and the tenant's files have room for {} more ({} bytes in {} "
                      "files allowed): delete some",
                      content.size(), room, kMostBytes, kMostFiles));
    growing_[tenant][id] = content.size();
  }
  const auto made = write_upload(tenant, id, name, content);
  note_growing(tenant, id, 0);
  return made;
}

ApiResult<Json> StoredFiles::write_upload(const std::string& tenant, const std::string& id, const std::string& name,
                                          std::string_view content) {
  const auto written = [&]() -> Status {
    ZRT_TRY(auto file, OutputFile::create(path_of(id), FileAccess::kOwnerOnly));
    ZRT_CHECK_OK(file.write(content));
    return file.commit();
  }();
  if (!written) return std::unexpected(make_error(500, written.error().message));
  auto made = put(tenant, id, name, content.size(), "batch");
  if (!made) {
    std::error_code ignored;
    fs::remove(path_of(id), ignored);
  }
  return made;
}

ApiResult<Json> StoredFiles::put(const std::string& tenant, const std::string& id, const std::string& name,
                                 std::uint64_t n_bytes, const char* purpose) {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  Json file{{"id", id},
            {"object", "file"},
            {"bytes", n_bytes},
            {"created_at", now},
            {"expires_at", now + kKept_s},
            {"filename", name},
            {"purpose", purpose},
            {"status", "processed"},
            {"status_details", nullptr}};
  const auto stored = store_.objects().put({kFileKind, tenant, id, now, purpose, n_bytes, file.dump()});
  if (!stored) return std::unexpected(to_api_error(stored.error()));
  return file;
}

ApiResult<void> StoredFiles::adopt(const std::string& tenant, const std::string& id, const std::string& name) {
  std::error_code failure;
  const auto n_bytes = fs::file_size(path_of(id), failure);
  if (failure) return std::unexpected(make_error(500, fmt::format("[files] {}: {}", path_of(id), failure.message())));
  ZRT_CHECK_OK(put(tenant, id, name, n_bytes, "batch_output"));
  return {};
}

ApiResult<Json> StoredFiles::find(const std::string& tenant, const std::string& id, const char* param) const {
  ZRT_CHECK_OK(expect_kept());
  const auto row = store_.objects().find(kFileKind, tenant, id);
  if (!row) return std::unexpected(to_api_error(row.error()));
  if (!*row) return std::unexpected(no_file(id, param));
  return parse_json((*row)->body);
}

ApiResult<std::string> StoredFiles::list(const std::string& tenant, const std::string& purpose,
                                         const ListPage& page) const {
  ZRT_CHECK_OK(expect_kept());
  return list_of(store_.objects(), {kFileKind, tenant, purpose, page.after, page.is_ascending, page.limit},
                 [](const StoredObject& file) { return file.body; });
}

ApiResult<std::vector<ObjectName>> StoredFiles::names(const std::string& tenant) const {
  ZRT_CHECK_OK(expect_kept());
  auto all = store_.objects().names(kFileKind, tenant);
  if (!all) return std::unexpected(to_api_error(all.error()));
  return *std::move(all);
}

ApiResult<void> StoredFiles::remove(const std::string& tenant, const std::string& id) {
  ZRT_CHECK_OK(expect_kept());
  const auto removed = store_.objects().remove(kFileKind, tenant, id);
  if (!removed) return std::unexpected(to_api_error(removed.error()));
  if (!*removed) return std::unexpected(no_file(id, ""));
  std::error_code failure;
  fs::remove(path_of(id), failure);
  if (failure) log().error("[files] {} was not removed: {}", path_of(id), failure.message());
  return {};
}

void StoredFiles::remove_contents(const std::vector<ObjectName>& files) const {
  std::error_code ignored;
  for (const auto& file : files) fs::remove(path_of(file.id), ignored);
}

void StoredFiles::sweep(std::int64_t now_s,
                        const std::function<bool(const std::string& tenant, const std::string& id)>& is_in_use) {
  if (folder_.empty()) return;
  const auto old = store_.objects().names(kFileKind, "", now_s - kKept_s + 1);
  if (!old) return log().error("{}", old.error().message);
  for (const auto& row : *old) {
    if (is_in_use(row.tenant, row.id)) continue;
    if (const auto removed = remove(row.tenant, row.id); !removed) log().error("{}", removed.error().message);
  }
}

Status StoredFiles::remove_strays(const std::set<std::string>& others) const {
  if (folder_.empty()) return {};
  ZRT_TRY(const auto rows, store_.objects().names(kFileKind, ""));
  std::set<std::string> known = others;
  for (const auto& row : rows) known.insert(row.id);
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder_, failure)) {
    const auto name = entry.path().filename().string();
    if (known.contains(name)) continue;
    fs::remove(entry.path(), failure);
    log().info("[files] {} was nobody's and is removed", entry.path().string());
  }
  if (failure) return fail(StatusCode::kUnavailable, "[files] {}: {}", folder_, failure.message());
  return {};
}

}  // namespace zinc_rt::server
