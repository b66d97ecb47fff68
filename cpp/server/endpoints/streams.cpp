// Handles /v1/streams/{id}: lets clients reconnect to a stream after their connection broke, or end it.
#include <fmt/format.h>

#include "base/error.h"
#include "base/read_number.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

ApiResult<std::shared_ptr<ResumableStream>> stream_of(ServerCore& core, const Exchange& exchange) {
  // A caller with an admin's key has no streams.
  return core.streams.find(exchange.params.at("id"), exchange.caller.tenant ? exchange.caller.tenant->name : "");
}

// Returns the number of the last event that the client has. Browsers send it in a header; other clients may send
// ?after=.
ApiResult<std::uint64_t> seen_by(const HttpRequest& request) {
  auto text = request.header("last-event-id");
  if (text.empty() && request.query.starts_with("after=")) text = std::string_view(request.query).substr(6);
  std::uint64_t seen = 0;
  if (text.empty() || (read_number(text, seen) && seen < UINT64_MAX)) return seen;
  return std::unexpected(make_error(
      400, fmt::format("[stream] Last-Event-ID \"{}\": a number wanted", text.substr(0, 40)), "Last-Event-ID"));
}

ApiResult<void> resume(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto stream, stream_of(core, exchange));
  ZRT_TRY(const auto seen, seen_by(exchange.request));
  if (exchange.request.method != "HEAD") {
    ZRT_CHECK_OK(stream->attach(exchange.connection, seen));
    // The request (HEAD) only checks whether the stream exists, so the client that reads the stream now stays
    // connected.
  } else {
    HttpResponse head;
    head.content_type = "text/event-stream";
    exchange.connection->start_stream(std::move(head));
  }
  core.metrics.answered(200);
  return {};
}

}  // namespace

void add_stream_routes(Router& router, ServerCore& core) {
  router.add({"GET", "/v1/streams/{id}", Access::kKey, false, [&core](Exchange& exchange) {
                if (const auto done = resume(core, exchange); !done) answer(core, exchange, done.error());
              }});
  router.add({"DELETE", "/v1/streams/{id}", Access::kKey, false, [&core](Exchange& exchange) {
                if (const auto empty = expect_no_fields(exchange.request); !empty)
                  return answer(core, exchange, empty.error());
                const auto stream = stream_of(core, exchange);
                if (!stream) return answer(core, exchange, stream.error());
                (*stream)->discard();
                answer(core, exchange, fmt::format(R"({{"id":"{}","cancelled":true}})", (*stream)->id()));
              }});
}

}  // namespace zinc_rt::server
