// Makes and changes a batch's object in the form of OpenAI's API. Batches stores it as JSON.
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/json_in.h"
#include "server/batches/batch_lines.h"

namespace zinc_rt::server {

// BatchCall is the body of POST /v1/batches.
struct BatchCall {
  std::string input_file_id, endpoint, completion_window;
  Json metadata;  // null, or an object of texts
};
// Reads the body. Errors: 400 that names the field.
ApiResult<BatchCall> read_batch_call(const Json& body);

// Returns the object of a batch whose lines have not been read yet. Times are seconds since 1970.
Json new_batch(const std::string& id, const BatchCall& call, std::int64_t now_s, std::int64_t window_s);
// Sets the status and the field with the time of that status, such as completed_at.
void set_status(Json& batch, const char* status, std::int64_t now_s);
// Sets the counts of lines and tokens. Does not change the total number of lines.
void set_counts(Json& batch, std::uint64_t completed, std::uint64_t failed, const BatchUsage& usage);
// Returns as many of the errors as fit into kMostErrorListBytes. If some do not fit, the last element states how many.
Json error_list(const std::vector<LineError>& errors);
// How many bytes of JSON text the errors in a batch's row may have.
constexpr std::size_t kMostErrorListBytes = 16u << 10;
bool has_ended(const Json& batch);
std::vector<const char*> unfinished_statuses();

// Return the ids of a batch's two output files, which are computed from the batch's id.
std::string output_id_of(std::string_view batch_id);
std::string errors_id_of(std::string_view batch_id);

}  // namespace zinc_rt::server
