// Handles / and /ui/*: the chat page. The page contains no secrets. The page gets its data from the API's paths, with
// the user's key.
#include <fmt/format.h>

#include "server/core.h"
#include "server/endpoints/ui_files.h"

namespace zinc_rt::server {
namespace {

// The Content-Security-Policy of the page: it lets the page load nothing from other servers and run no inline scripts.
// So even if a model's text gets past the page's sanitizer, it cannot run a script or reach another server.
constexpr const char* kPolicy =
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// Returns whether the client wants the page. Clients of Ollama request the path / only to find out whether the server
// runs.
bool wants_page(const HttpRequest& request) {
  const auto accept = request.header("accept");
  return accept.empty() || accept.contains("text/html");
}

void answer_running(ServerCore& core, Exchange& exchange) {
  HttpResponse response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = "Ollama is running";
  core.metrics.answered(response.status);
  exchange.connection->respond(std::move(response));
}

void answer_file(ServerCore& core, Exchange& exchange, const UiFile& file) {
  HttpResponse response;
  response.headers = {{"ETag", std::string(file.etag)},     {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", kPolicy}, {"X-Content-Type-Options", "nosniff"},
                      {"X-Frame-Options", "DENY"},          {"Referrer-Policy", "no-referrer"}};
  response.content_type = file.content_type;
  if (exchange.request.header("if-none-match") == file.etag)
    response.status = 304;
  else
    response.body = file.bytes;
  core.metrics.answered(response.status);
  exchange.connection->respond(std::move(response));
}

}  // namespace

void add_ui_routes(Router& router, ServerCore& core) {
  for (const UiFile& file : ui_files()) {
    const bool is_page = file.name == "index.html";
    router.add({"GET", is_page ? "/" : fmt::format("/ui/{}", file.name), Access::kOpen, true,
                [&core, &file, is_page](Exchange& exchange) {
                  if (is_page && !wants_page(exchange.request)) return answer_running(core, exchange);
                  answer_file(core, exchange, file);
                }});
  }
}

}  // namespace zinc_rt::server
