// An API call whose inputs become requests for embeddings or scores: the inputs, and how the answer is made from the
// results.
// Thread rule: EmbeddingJob has one thread at a time call it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/api/embedding.h"
#include "server/router.h"

namespace zinc_rt::server {

struct ServerCore;
struct ServedModel;

class EmbeddingTask {
 public:
  virtual ~EmbeddingTask() = default;
  virtual std::size_t size() const = 0;
  virtual Request request(std::size_t i) const = 0;
  // Tells that a request was submitted and will not be asked for again.
  virtual void forget(std::size_t) {}
  // For an input's error: the field at fault, and the input's position in it. The position is empty if there is one
  // input.
  struct Place {
    std::string field, text;
  };
  virtual Place place(std::size_t i, const Error& error) const = 0;
  virtual std::string answer(EmbeddingAnswer results) const = 0;
};

// The content of a body, before its model is known.
struct WantedTask {
  std::string model;
  // Errors: a model without this ability, or an answer that would be too long.
  std::function<ApiResult<std::unique_ptr<EmbeddingTask>>(const ServerCore&, const ServedModel&)> make;
};

// A path: how to read its body, and the prefix of its answers' ids.
struct TaskPath {
  const char* path;
  ApiResult<WantedTask> (*read)(const Json& body, const Exchange& exchange, Ignored ignored);
  const char* prefix = "embd-";
};
// `path` outlives the router.
void add_task_route(Router& router, ServerCore& core, const TaskPath& path);

}  // namespace zinc_rt::server
