// The table of the APIs that generate text: how a path's body is read, how its answer is written, and how the answers'
// ids begin.
// Thread rule: constant data and pure functions.
#pragma once

#include <span>
#include <string>

#include "server/answers/answer_writer.h"
#include "server/api/generation_call.h"
#include "zinc_rt/model_card.h"

namespace zinc_rt::server {

struct GenerationApi {
  const char* path;
  ApiResult<GenerationCall> (*parse)(const Json& body, const Request& defaults, Ignored ignored);
  const char* id_prefix;
  MakeWriter make_writer = write_openai;
  // True: a body may go on with an earlier answer (previous_response_id), so answers are stored.
  bool has_conversations = false;
  // Writes the answer to a request that only loads or unloads a model; null: the API has no such requests.
  std::string (*loaded)(Api api, const std::string& model, bool is_unloaded) = nullptr;
};

std::span<const GenerationApi> generation_apis();

// Returns the fields that all parts of an answer share. `id` is unique; the API's prefix is put before it. `model_id`
// is the name that clients use.
AnswerHead make_head(const GenerationApi& api, const GenerationCall& call, const std::string& id,
                     const std::string& model_id, const ModelCard& card);

}  // namespace zinc_rt::server
