// EmbeddingTask is what an EmbeddingJob computes. It provides the inputs of an API call for embeddings or scores as
// requests, and makes the answer from their results.
// Thread rule: EmbeddingJob calls it from one thread at a time.
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
  // Called when request i was submitted, so that its memory can be released.
  virtual void forget(std::size_t) {}
  // Place names an input of the body in error messages: `field` is the body's field, and `text` the input's position in
  // the field, such as "input[3]". `text` is empty if the body has only one input.
  struct Place {
    std::string field, text;
  };
  virtual Place place(std::size_t i, const Error& error) const = 0;
  virtual std::string answer(EmbeddingAnswer results) const = 0;
};

// WantedTask is what was read from a body whose model has not been found yet.
struct WantedTask {
  std::string model;
  // Makes the task. Errors: the model cannot compute embeddings or scores, or the answer would be too long.
  std::function<ApiResult<std::unique_ptr<EmbeddingTask>>(const ServerCore&, const ServedModel&)> make;
};

// TaskPath is an HTTP path with the function that reads its bodies and the prefix of the ids of its answers.
struct TaskPath {
  const char* path;
  ApiResult<WantedTask> (*read)(const Json& body, const Exchange& exchange, Ignored ignored);
  const char* prefix = "embd-";
};
// Adds the path to the router. REQUIRES: `path` outlives the router.
void add_task_route(Router& router, ServerCore& core, const TaskPath& path);

}  // namespace zinc_rt::server
