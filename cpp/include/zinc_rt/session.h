// A conversation of one tenant, and a generation that is under way.
// Thread rule: a Stream belongs to one thread at a time, but cancel() may be called from any; sessions may be shared.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "zinc_rt/request.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

class Generation;
class EngineCore;
struct TenantState;

// A generation, token by token. Each next() runs the engine for at most one token, so other requests run in between.
class Stream {
 public:
  explicit Stream(std::unique_ptr<Generation> generation);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();  // an unfinished generation is cancelled; its slot and pages are free at once

  // The next event; nothing when the generation has ended. Errors end it too.
  Result<std::optional<StreamEvent>> next();
  void cancel();
  // What was generated so far, or in all once next() gave nothing.
  Completion completion() const;

 private:
  std::unique_ptr<Generation> generation_;
};

class Session {
 public:
  Session(std::shared_ptr<EngineCore> engine, std::shared_ptr<TenantState> tenant, std::string system);

  // Errors: kInvalidArgument for a request that cannot be served (with both numbers), kExhausted when no slot or pages
  // are free, kUnavailable after the engine was closed.
  Result<Stream> stream(const Request& request) const;
  Result<Completion> generate(const Request& request) const;

 private:
  std::shared_ptr<EngineCore> engine_;
  std::shared_ptr<TenantState> tenant_;
  std::string system_;  // put before the messages of a request that has none of role system
};

}  // namespace zinc_rt
