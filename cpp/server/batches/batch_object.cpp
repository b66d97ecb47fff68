#include "server/batches/batch_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "server/api/body_reader.h"

namespace zinc_rt::server {
namespace {

constexpr std::string_view kBatchPrefix = "batch_";

struct BatchStatusRow {
  // time: the field with the time at which the status began. Empty: created_at has that time.
  const char *status, *time;
  bool is_last;
};
constexpr BatchStatusRow kBatchStatuses[] = {
    {"validating", "", false},
    {"failed", "failed_at", true},
    {"in_progress", "in_progress_at", false},
    {"finalizing", "finalizing_at", false},
    {"completed", "completed_at", true},
    {"expired", "expired_at", true},
    {"cancelling", "cancelling_at", false},
    {"cancelled", "cancelled_at", true},
};

const BatchStatusRow& row_of(std::string_view status) {
  return *std::ranges::find_if(kBatchStatuses, [&](const BatchStatusRow& row) { return status == row.status; });
}

}  // namespace

ApiResult<BatchCall> read_batch_call(const Json& body) {
  BatchCall call;
  BodyReader r(body, nullptr);
  const auto needed = [&](const char* name, std::optional<std::string> value, std::string& out) {
    if (!value || value->empty()) return r.wrong(name, "it is missing");
    out = std::move(*value);
  };
  needed("input_file_id", r.string("input_file_id", 256), call.input_file_id);
  needed("endpoint", r.string("endpoint", 256), call.endpoint);
  if (r.is_good() && !is_batch_path(call.endpoint))
    r.wrong("endpoint", fmt::format("\"{}\" is given, one of {} wanted", call.endpoint, batch_path_names()));
  needed("completion_window", r.take(r.fields().get_choice("completion_window", {"24h"})), call.completion_window);
  if (const Json* metadata = read_metadata(r)) call.metadata = *metadata;
  r.refuse("output_expires_after", "files are kept for 30 days");
  ZRT_CHECK_OK(r.finish());
  return call;
}

Json new_batch(const std::string& id, const BatchCall& call, std::int64_t now_s, std::int64_t window_s) {
  Json batch{{"id", id},
             {"object", "batch"},
             {"endpoint", call.endpoint},
             {"errors", nullptr},
             {"input_file_id", call.input_file_id},
             {"completion_window", call.completion_window},
             {"status", "validating"},
             {"output_file_id", nullptr},
             {"error_file_id", nullptr},
             {"created_at", now_s},
             {"expires_at", now_s + window_s}};
  for (const auto& row : kBatchStatuses)
    if (*row.time != '\0') batch[row.time] = nullptr;
  batch["request_counts"]["total"] = 0;
  set_counts(batch, 0, 0, {});
  batch["metadata"] = call.metadata;
  return batch;
}

void set_counts(Json& batch, std::uint64_t completed, std::uint64_t failed, const BatchUsage& usage) {
  batch["request_counts"]["completed"] = completed;
  batch["request_counts"]["failed"] = failed;
  batch["usage"] = {{"input_tokens", usage.input},
                    {"input_tokens_details", {{"cached_tokens", usage.cached}}},
                    {"output_tokens", usage.output},
                    {"output_tokens_details", {{"reasoning_tokens", usage.reasoning}}},
                    {"total_tokens", usage.input + usage.output}};
}

void set_status(Json& batch, const char* status, std::int64_t now_s) {
  batch["status"] = status;
  if (const char* time = row_of(status).time; *time != '\0') batch[time] = now_s;
}

bool has_ended(const Json& batch) {
  return row_of(batch["status"].get_ref<const std::string&>()).is_last;
}

std::vector<const char*> unfinished_statuses() {
  std::vector<const char*> names;
  for (const auto& row : kBatchStatuses)
    if (!row.is_last) names.push_back(row.status);
  return names;
}

Json error_list(const std::vector<LineError>& errors) {
  Json data = Json::array();
  std::size_t n_bytes = 0;
  for (const auto& error : errors) {
    Json shown{{"code", error.code},
               {"message", error.message},
               {"param", error.param.empty() ? Json() : Json(error.param)},
               {"line", error.line == 0 ? Json() : Json(error.line)}};
    n_bytes += shown.dump().size() + 1;
    if (n_bytes > kMostErrorListBytes) {
      data.push_back({{"code", "more_errors"},
                      {"message", fmt::format("{} more errors are not shown: {} bytes are allowed for all",
                                              errors.size() - data.size(), kMostErrorListBytes)},
                      {"param", nullptr},
                      {"line", nullptr}});
      break;
    }
    data.push_back(std::move(shown));
  }
  return Json{{"object", "list"}, {"data", std::move(data)}};
}

std::string output_id_of(std::string_view batch_id) {
  return fmt::format("file-{}-output", batch_id.substr(kBatchPrefix.size()));
}

std::string errors_id_of(std::string_view batch_id) {
  return fmt::format("file-{}-errors", batch_id.substr(kBatchPrefix.size()));
}

}  // namespace zinc_rt::server
