// A session is one conversation of a tenant. A stream is one running generation.
// Thread rule: a Stream belongs to one thread at a time, except that any thread may call cancel(). All other types in
// this file may be used from any thread.
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

// RequestHandle is a running request, whose events go to a sink. With it the caller can wait for the request or cancel
// it.
class RequestHandle {
 public:
  explicit RequestHandle(std::vector<std::shared_ptr<Generation>> generations);

  // Ends the request as cancelled, unless it has ended already. Its slot and pages are free within one step. Events
  // that the reader has not taken by then may be lost, but completion() still contains them.
  void cancel();
  bool is_done() const;
  // Blocks until the request has ended. Errors: the error that ended the request, such as a device fault or a closed
  // engine.
  Status wait() const;
  // Waits for at most timeout_ms. Returns true once the request has ended and its callback has handled all events. If
  // it is called inside the callback, it returns whether the request has ended.
  bool wait_for(double timeout_ms) const;
  // Returns what has been generated so far. Once the request has ended, that is the whole completion.
  Completion completion() const;

 private:
  std::vector<std::shared_ptr<Generation>> generations_;
};

// Stream returns the tokens of one generation, in the order in which the engine generates them.
class Stream {
 public:
  Stream(RequestHandle handle, std::shared_ptr<QueueSink> queue);
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();  // cancels the generation if it has not ended

  // Waits for the next event and returns it. Returns nullopt once the generation has ended. An error also ends it.
  Result<std::optional<StreamEvent>> next();
  // Waits for the next event like next(), but at most timeout_ms. `is_there` is false if no event came in that time.
  Result<std::optional<StreamEvent>> next_within(double timeout_ms, bool& is_there);
  void cancel();
  Completion completion() const { return handle_.completion(); }
  // Returns a file descriptor for event loops, which is readable while next() would not block. The stream owns it.
  // Returns -1 if the system has no free descriptor.
  int readable_fd();

 private:
  RequestHandle handle_;
  std::shared_ptr<QueueSink> queue_;
};

// CachedPrefix tells how many tokens a prompt has (n_tokens), and for how many of them the KV is in the prefix cache
// (cached_tokens).
struct CachedPrefix {
  std::uint32_t n_tokens = 0, cached_tokens = 0;
  std::uint32_t device = 0;  // device to which the request would go now, and whose prefix cache was searched
};

class Session {
 public:
  Session(std::shared_ptr<EngineCore> engine, std::shared_ptr<TenantState> tenant, std::string system);

  // Starts a generation and returns its stream. Errors: kInvalidArgument for a request that could never be served (the
  // message has the wanted and the allowed number); kNotFound for an unknown model; kExhausted with retry_after_s if
  // too many requests wait; kUnavailable after the engine was closed; kCancelled if request.cancel was requested before
  // the call returned.
  Result<Stream> stream(const Request& request) const;
  // Starts a generation whose events go to `sink`. Pass the request with std::move(), so that only one copy of it is in
  // memory. Its texts are freed once they are tokenized. Errors: as in stream().
  Result<RequestHandle> submit(Request request, std::shared_ptr<Sink> sink) const;
  Result<Completion> generate(const Request& request) const;

  // Returns how much of this request's prompt is in the prefix cache now, for this tenant and the request's cache_salt.
  // A router can use the number to choose one of several engines. The call computes nothing and does not count as a
  // use. It waits for a step. Errors: those of submit() about the prompt.
  Result<CachedPrefix> cached_prefix(Request request) const;

  // save_prefix writes the KV of a prompt to a file, in whole pages of 16 tokens. It reads only the fields of the
  // request that determine the prompt and the model. load_prefix puts such a file into the tenant's prefix cache.
  // Requests that begin with this prompt then use the loaded KV. It has the bits that they would compute themselves.
  // Both return the number of tokens. Errors: kCorrupt for a file that is damaged or of another kind; kInvalidArgument,
  // naming the difference, for a file of another model, tier, kv_dtype, arithmetic or layout; kUnavailable for models
  // with recurrent layers.
  Result<std::uint32_t> save_prefix(Request request, const std::string& path, const StopAsked& is_stopped = {}) const;
  Result<std::uint32_t> load_prefix(const std::string& path, const std::string& model = {},
                                    const std::string& cache_salt = {}) const;

  const std::string& tenant_name() const;
  const std::string& system() const { return system_; }

 private:
  std::shared_ptr<EngineCore> engine_;
  std::shared_ptr<TenantState> tenant_;
  std::string system_;  // stands before the messages of a request that contains no system message
};

}  // namespace zinc_rt
