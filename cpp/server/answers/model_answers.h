// What answers say about a model, and whether its chat template reads tools.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "server/api/json_in.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

// What /v1/models shows of a loaded model besides its card.
struct ShownModel {
  std::string id;  // the name that clients use
  std::int64_t created_s = 0;
  std::uint32_t max_context = 0;
  std::uint64_t n_bad_logits = 0;  // requests that ended because logits were not finite
};

// Returns an element of the list that GET /v1/models answers.
Json describe_model(const ShownModel& model, const ModelCard& card, const ModelMemory& memory);

// Returns whether the template's text changes if tools are given. Also returns true if the template fails to produce
// a text. `variables`: the chat's variables for the template, a JSON object or empty.
bool reads_tools(const Engine& engine, const std::string& engine_model, const std::string& variables);
// Returns the error (400) for tools that the template ignores. `id` is the name that clients use.
ApiError tools_unread(const std::string& id);

}  // namespace zinc_rt::server
