// Handles /v1/files: the input and output files of batches.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "server/api/multipart.h"
#include "server/batches/file_sender.h"
#include "server/batches/listing.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

// The form with the largest file is at most this long. 64 KiB are for the parts of the form around the file.
constexpr std::size_t kMostFormBytes = StoredFiles::kMostUploadBytes + (64u << 10);
constexpr std::size_t kFilesShown = 10000;

// Returns an error about a part of the form. The texts are escaped, because names in a form need not be UTF-8.
std::unexpected<ApiError> wrong_part(const std::string& name, const std::string& what) {
  return wrong_field(replace_invalid_utf8(name), replace_invalid_utf8(what));
}

ApiResult<std::string> upload_file(ServerCore& core, Exchange& exchange) {
  ZRT_CHECK_OK(core.files.expect_kept());
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  const auto type = exchange.request.header("content-type");
  if (type.empty()) return wrong_part("Content-Type", "it is missing, multipart/form-data wanted");
  ZRT_TRY(const auto form, read_form(type, exchange.request.body));
  const FormPart *purpose = nullptr, *file = nullptr;
  for (const auto& part : form) {
    const FormPart** known = part.name == "purpose" ? &purpose : part.name == "file" ? &file : nullptr;
    if (known == nullptr) return wrong_part(part.name.substr(0, 80), "this server knows no such field");
    if (*known != nullptr) return wrong_part(part.name, "it is given twice");
    *known = &part;
  }
  if (purpose == nullptr) return wrong_part("purpose", "it is missing, batch wanted");
  if (purpose->body != "batch")
    return wrong_part("purpose", fmt::format("\"{}\" is given, batch wanted", purpose->body.substr(0, 100)));
  if (file == nullptr) return wrong_part("file", "it is missing");
  if (!file->is_file) return wrong_part("file", "it has no filename, so it is no file");
  if (file->file_name.empty() || file->file_name.size() > StoredFiles::kMostNameBytes)
    return wrong_part("file", fmt::format("its name has {} bytes, 1 to {} wanted", file->file_name.size(),
                                          StoredFiles::kMostNameBytes));
  if (file->body.empty()) return wrong_part("file", "it is empty");
  ZRT_TRY(const auto made, core.files.upload(tenant, file->file_name, file->body));
  return made.dump();
}

ApiResult<std::string> list_files(ServerCore& core, Exchange& exchange) {
  ZRT_CHECK_OK(core.files.expect_kept());
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  ZRT_TRY(const auto query, read_query(exchange.request.query));
  Fields fields(query);
  ZRT_TRY(const auto page, read_page(fields, kFilesShown, kFilesShown));
  ZRT_TRY(const auto purpose, fields.get_choice("purpose", {"batch", "batch_output"}));
  ZRT_CHECK_OK(fields.expect_no_others());
  return core.files.list(tenant, purpose.value_or(""), page);
}

ApiResult<std::string> show_file(ServerCore& core, Exchange& exchange) {
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  ZRT_TRY(const auto file, core.files.find(tenant, exchange.params.at("id"), ""));
  return file.dump();
}

ApiResult<std::string> delete_file(ServerCore& core, Exchange& exchange) {
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  const auto& id = exchange.params.at("id");
  if (const auto user = core.batches.user_of(tenant, id); !user.empty())
    return std::unexpected(make_error(
        409, fmt::format("[files] \"{}\" is read by batch \"{}\", which has not ended: cancel that first", id, user)));
  ZRT_CHECK_OK(core.files.remove(tenant, id));
  return Json{{"id", id}, {"object", "file"}, {"deleted", true}}.dump();
}

ApiResult<void> send_content(ServerCore& core, Exchange& exchange) {
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  const auto& id = exchange.params.at("id");
  ZRT_TRY(const auto file, core.files.find(tenant, id, ""));
  HttpResponse head;
  head.content_type = "application/octet-stream";
  head.headers = {{"x-request-id", exchange.id}, {"X-Content-Type-Options", "nosniff"}};
  if (!send_file(core, exchange, core.files.path_of(id), std::move(head)))
    return std::unexpected(make_error(500, fmt::format("[files] the content of \"{}\" cannot be read", id)));
  core.metrics.answered(200);
  return {};
}

}  // namespace

ApiResult<std::string> tenant_name(const Exchange& exchange) {
  if (exchange.caller.tenant) return exchange.caller.tenant->name;
  return std::unexpected(make_error(403, "[keys] this is an admin's key; files and batches need one of a tenant"));
}

void add_file_routes(Router& router, ServerCore& core) {
  router.add({"POST", "/v1/files", Access::kKey, false, answering(core, upload_file), kMostFormBytes});
  router.add({"GET", "/v1/files", Access::kKey, false, answering(core, list_files)});
  router.add({"GET", "/v1/files/{id}", Access::kKey, false, answering(core, show_file)});
  router.add({"DELETE", "/v1/files/{id}", Access::kKey, false, answering(core, delete_file)});
  router.add({"GET", "/v1/files/{id}/content", Access::kKey, false, [&core](Exchange& exchange) {
                if (const auto sent = send_content(core, exchange); !sent) answer(core, exchange, sent.error());
              }});
}

}  // namespace zinc_rt::server
