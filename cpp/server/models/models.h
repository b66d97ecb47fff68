// Models lists the models that are served, and maps the ids that clients use to the engine's names.
// Thread rule: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/api/api_error.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

constexpr std::uint32_t kQueueCap = 16384;  // the default length of a model's queue
// Sets the queue's length to kQueueCap, which is more than the engine's default, unless the options set it.
void widen_queue(EngineOptions& options);

struct ModelSpec {
  std::string path;
  std::string id;                    // id of the model; empty: the name of the file without its ending
  std::vector<std::string> aliases;  // further names that clients may use for the model
  EngineOptions options;

  bool operator==(const ModelSpec&) const = default;
};

// Returns the id by which clients call the model.
std::string served_id(const ModelSpec& spec);

// LoadedBy tells who loaded a model. A model of the configuration is removed when the configuration no longer lists it.
// A model that a request loaded is removed when it is idle.
enum class LoadedBy : std::uint8_t { kConfiguration, kAdmin, kRequest };

struct ServedModel {
  std::string id, engine_name, path;
  std::vector<std::string> aliases;
  std::int64_t created_s = 0;
  std::uint32_t max_context = 0;
  std::uint32_t queue_cap = 0;  // the most choices that may wait for a slot of the model
  ModelSpec spec;
  std::string source;  // identifies the file: its path, size and time of change
  LoadedBy loaded_by = LoadedBy::kConfiguration;
  ModelCard card;
  ModelMemory memory;
  // Number of requests that ended because logits were not finite, as of the last update.
  std::uint64_t n_bad_logits = 0;
  // All copies of a ServedModel that find() returned share this. The model is removed only after the last copy is
  // destroyed, so their holders can still submit to it.
  std::shared_ptr<const void> hold;
};

// Returns whether a text can be a model's id. Ids appear in paths, logs and metrics, so they have 1 to 256 bytes of
// UTF-8 without control characters.
bool is_good_model_id(std::string_view id);

class Models {
 public:
  explicit Models(Engine engine) : engine_(std::move(engine)) {}

  // Loads a model, which may take minutes. Errors: the engine's; 409 if the id is taken.
  ApiResult<void> load(const ModelSpec& spec, LoadedBy by);
  // Loads a model of the configuration before the first request. Errors: the engine's; kInvalidArgument if the id is
  // taken.
  Status load_at_start(const ModelSpec& spec);
  // Loads and removes configured models until they match `specs`. Errors are logged. If a model could not be loaded,
  // none is removed. Must be called from one thread at a time.
  void reconfigure(const std::vector<ModelSpec>& specs);
  // Removes a model. New requests do not find it from now on; requests that have found it still run to their end.
  // Errors: 404.
  ApiResult<void> unload(const std::string& id);
  // Finds a model by its id, an alias or the engine's name. An empty name finds the first model that was not loaded by
  // a request. Errors: 404 that lists the existing ids.
  ApiResult<ServedModel> find(const std::string& name) const;
  // For display only: unlike find(), the copies do not prevent that a model is removed.
  std::vector<ServedModel> list() const;
  // Returns reads_tools() of answers/model_answers.h, and remembers it.
  bool reads_tools(const ServedModel& model, const std::string& template_kwargs);
  // Sets n_bad_logits to the engine's count. Does nothing for an unknown name.
  void note_bad_logits(const std::string& engine_name, std::uint64_t n);
  std::vector<std::string> with_bad_logits() const;  // returns the ids of models with n_bad_logits > 0

  static std::string default_id(const std::string& path);

 private:
  Result<ServedModel> open(const ModelSpec& spec, const std::string& id, LoadedBy by);
  // Returns the first name of `spec` that a loaded model already uses; empty if no name is used.
  std::string taken(const ModelSpec& spec) const;
  ApiResult<void> replace(const ModelSpec& spec, const std::string& id);
  std::string new_engine_name(const std::string& id);
  ServedModel describe(const ModelSpec& spec, const std::string& engine_name, LoadedBy by) const;
  // Waits until no other copy of the model is left, then removes it from the engine. REQUIRES: it is not in models_.
  Status remove(ServedModel& model);
  ApiError not_found(const std::string& name) const;  // REQUIRES: mutex_

  Engine engine_;
  mutable std::mutex mutex_;
  // The served models, in the order in which lists show them.
  std::vector<ServedModel> models_;
  std::map<std::string, std::uint32_t> n_loads_;  // key: id
  // Cached results about templates; key: id, and the request's template variables. Their number is limited, because
  // variables come from clients.
  static constexpr std::size_t kMostKnown = 1024;
  void forget_template(const std::string& id);  // REQUIRES: mutex_
  std::map<std::pair<std::string, std::string>, bool> reads_tools_;
};

}  // namespace zinc_rt::server
