// A conversation of one tenant, and a generation that is under way.
// Thread rule: a Stream belongs to one thread at a time, but cancel() may be called from any; the rest from any.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zinc_rt/request.h"
#include "zinc_rt/sink.h"
#include "zinc_rt/status.h"
#include "zinc_rt/stop.h"

namespace zinc_rt {

class Generation;
class EngineCore;
class QueueSink;
struct TenantState;

// A request under way, whose events go to a sink.
class RequestHandle {
 public:
  explicit RequestHandle(std::vector<std::shared_ptr<Generation>> generations);

  // The request ends as cancelled, unless it had ended by itself; its slot and pages are free within one step. Events
  // that its reader has not taken by then may be lost; the completion has all.
  void cancel();
  bool is_done() const;
  // Blocks until it ended. Errors: what ended it, if it was not the request itself (device fault, engine closed).
  Status wait() const;
  // Whether it has ended by then, and a callback has had all events (inside of the callback: whether it has ended).
  bool wait_for(double timeout_ms) const;
  // What was generated so far, or in all.
  Completion completion() const;

 private:
  std::vector<std::shared_ptr<Generation>> generations_;
};

// A generation, token by token, as the engine makes it.
class Stream {
 public:
  Stream(RequestHandle handle, std::shared_ptr<QueueSink> queue);
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();  // an unfinished generation is cancelled

  // The next event, when it is there; nothing when the generation has ended. Errors end it too.
  Result<std::optional<StreamEvent>> next();
  // As next(), but gives up after timeout_ms: false in `is_there`, which is otherwise true.
  Result<std::optional<StreamEvent>> next_within(double timeout_ms, bool& is_there);
  void cancel();
  Completion completion() const { return handle_.completion(); }
  // A file descriptor that is readable while next() would not block, for event loops; the stream owns it. -1: the
  // system has none left.
  int readable_fd();

 private:
  RequestHandle handle_;
  std::shared_ptr<QueueSink> queue_;
};

// Of a prompt: its tokens, and those whose KV the prefix cache holds.
struct CachedPrefix {
  std::uint32_t n_tokens = 0, cached_tokens = 0;
  std::uint32_t device = 0;  // where the request would go now, and the tokens are
};

class Session {
 public:
  Session(std::shared_ptr<EngineCore> engine, std::shared_ptr<TenantState> tenant, std::string system);

  // Errors: kInvalidArgument for a request that could never be served, with both numbers; kNotFound for an unknown
  // model; kExhausted with retry_after_s when too many requests wait; kUnavailable after the engine was closed;
  // kCancelled when request.cancel was requested before it returned.
  Result<Stream> stream(const Request& request) const;
  // A request that is moved in is in memory once; its texts are freed as soon as they are tokens.
  Result<RequestHandle> submit(Request request, std::shared_ptr<Sink> sink) const;
  Result<Completion> generate(const Request& request) const;

  // How much of the prompt of this request the prefix cache holds now for the tenant and the request's cache_salt: what
  // a router of several engines asks. Nothing is computed and nothing counts as used; waits for a step. Errors: those
  // of submit() about the prompt.
  Result<CachedPrefix> cached_prefix(Request request) const;

  // Writes the KV of a prompt to a file, in whole pages of 16 tokens; of the request its prompt, messages or token_ids,
  // what belongs to these, and the model count. load_prefix puts such a file into the tenant's prefix cache, from which
  // requests that begin so take it, with the bits that they would compute. Both give the number of tokens. Errors:
  // kCorrupt for a file that is no such or damaged, kInvalidArgument for one of another model, tier, kv_dtype, arithmetic
  // or layout, which it names; kUnavailable for models with recurrent layers.
  Result<std::uint32_t> save_prefix(Request request, const std::string& path, const StopAsked& is_stopped = {}) const;
  Result<std::uint32_t> load_prefix(const std::string& path, const std::string& model = {},
                                    const std::string& cache_salt = {}) const;

  const std::string& tenant_name() const;
  const std::string& system() const { return system_; }

 private:
  std::shared_ptr<EngineCore> engine_;
  std::shared_ptr<TenantState> tenant_;
  std::string system_;  // put before the messages of a request that has none of role system
  std::uint32_t id_;
};

}  // namespace zinc_rt
