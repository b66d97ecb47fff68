// Handles / and /ui/*: the chat page; and /local: the same page with an engine in it. The page contains no secrets. It
// gets its data from the API's paths, with the user's key.
#include <fmt/format.h>

#include "base/mapped_file.h"
#include "server/core.h"
#include "server/endpoints/ui_files.h"
#include "server/tenants/api_keys.h"

namespace zinc_rt::server {
namespace {

// The Content-Security-Policy of the page: it lets the page load nothing from other servers and run no inline scripts.
// So even if a model's text gets past the page's sanitizer, it cannot run a script or reach another server.
constexpr const char* kPolicy =
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The policy of the page with an engine in it, which compiles that engine and downloads models from other servers. The
// page's worker needs it too.
constexpr const char* kLocalPolicy =
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; connect-src *; "
    "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
constexpr std::string_view kLocalPage = "local.html", kLocalWorker = "worker.js";

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

void answer_file(ServerCore& core, Exchange& exchange, const UiFile& file, const char* policy = kPolicy) {
  HttpResponse response;
  response.headers = {{"ETag", std::string(file.etag)},    {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", policy}, {"X-Content-Type-Options", "nosniff"},
                      {"X-Frame-Options", "DENY"},         {"Referrer-Policy", "no-referrer"}};
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
    if (file.name == kLocalPage || file.name == kLocalWorker) continue;
    const bool is_page = file.name == "index.html";
    router.add({"GET", is_page ? "/" : fmt::format("/ui/{}", file.name), Access::kOpen, true,
                [&core, &file, is_page](Exchange& exchange) {
                  if (is_page && !wants_page(exchange.request)) return answer_running(core, exchange);
                  answer_file(core, exchange, file);
                }});
  }
}

Status add_local_page_routes(Router& router, ServerCore& core, const std::string& page_engine) {
  ZRT_TRY(const MappedFile file, MappedFile::open(page_engine));
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (!bytes.starts_with(std::string_view("\0asm", 4)))
    return fail(StatusCode::kInvalidArgument, "page_engine: {} is no WebAssembly module", page_engine);
  // The copy stays the one that was checked, whatever happens to the file.
  const auto kept = std::make_shared<const std::string>(bytes);
  ZRT_CHECK_OK(file.is_whole());
  const auto etag = std::make_shared<const std::string>(fmt::format("\"{}\"", sha256_hex(*kept).substr(0, 16)));
  router.add({"GET", "/ui/zinc_rt.wasm", Access::kOpen, true, [&core, kept, etag](Exchange& exchange) {
                answer_file(core, exchange, {"zinc_rt.wasm", "application/wasm", *etag, *kept});
              }});
  for (const UiFile& one : ui_files()) {
    if (one.name != kLocalPage && one.name != kLocalWorker) continue;
    router.add({"GET", one.name == kLocalPage ? "/local" : fmt::format("/ui/{}", one.name), Access::kOpen, true,
                [&core, &one](Exchange& exchange) { answer_file(core, exchange, one, kLocalPolicy); }});
  }
  return {};
}

}  // namespace zinc_rt::server
