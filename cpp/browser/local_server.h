// LocalServer answers the requests of one web page by an engine without threads. Requests and answers have the paths
// and bodies of the HTTP server (docs/server.md), so a page talks to its own engine as it would to a server.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::browser {

// A part of an answer, in the order in which the parts come: a head, then any number of texts, then the end.
struct AnswerPiece {
  enum class Kind : std::uint8_t {
    kNone,  // nothing is there yet: call pump()
    kHead,  // text is {"status": 200, "content_type": "..."}
    kBody,  // text is the next part of the body
    kEnd,   // the answer is complete; its number is free
  } kind = Kind::kNone;
  std::string text;
};

class LocalServer {
 public:
  // Opens a model. `body` is what POST /v1/models/load takes: {"path", "id", options of the model}. Options that it
  // leaves out have the engine's defaults, except that max_slots is 1. Errors: as of that path, with an HTTP status.
  static server::ApiResult<std::unique_ptr<LocalServer>> open(std::string_view body);
  ~LocalServer();

  // Takes a request and returns its number, which is not 0. `target` is a path, perhaps with a query, as in a URL. A request
  // that is refused has an answer that says why.
  std::uint32_t submit(const std::string& method, const std::string& target, std::string_view body);
  // Runs one step of the engine. Returns Engine::pump()'s answer: if nothing ran, the next call is due after wait_ms, or
  // after submit() or cancel().
  Pumped pump();
  // Removes the next part of an answer and returns it. An unknown number has ended. A part that nobody takes waits in
  // memory, and does not hold up the request.
  AnswerPiece next(std::uint32_t number);
  // Ends the request and forgets its answer. Does nothing for an unknown number.
  void cancel(std::uint32_t number);
  // Returns {"version", "arithmetic_version", "model": <as in /v1/models>, "stats": <EngineStats>}.
  std::string info() const;

 private:
  class Call;
  class CallSink;
  explicit LocalServer(Engine engine, std::string id);

  server::HttpResponse answer_to(const std::string& method, const std::string& path, std::string_view body,
                                 std::shared_ptr<Call>& call);
  server::ApiResult<std::shared_ptr<Call>> start(const std::string& path, std::string_view body,
                                                 server::HttpResponse& loaded);
  std::string describe() const;

  Engine engine_;
  const std::string id_;  // the name that clients use
  const std::string engine_model_;
  std::int64_t created_s_ = 0;
  std::map<std::uint32_t, std::shared_ptr<Call>> calls_;
  std::uint32_t last_number_ = 0;
};

}  // namespace zinc_rt::browser
