#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>

namespace zinc_rt::server {
namespace {

struct Missing {
  const char *path, *what;
};
constexpr Missing kMissing[] = {
    {"/v1/audio/transcriptions", "audio"},
    {"/v1/audio/speech", "audio"},
    {"/v1/images/generations", "images"},
    {"/v1/moderations", "moderation"},
    {"/v1/fine_tuning/jobs", "fine-tuning"},
    {"/api/pull", "fetching models through the API; `zinc-rt pull` does it"},
    {"/api/push", "sending models"},
    {"/api/create", "making models"},
    {"/api/copy", "copying models"},
    {"/api/delete", "deleting models through the API; `zinc-rt rm` does it"},
    {"/infill", "infilling"},
    {"/completion", "llama.cpp's own API"},
    {"/embedding", "embeddings"},
    {"/slots", "llama.cpp's own API"},
};

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at < path.size();) {
    const auto end = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool matches(const Route& route, std::string_view path, std::map<std::string, std::string>& params) {
  const auto wanted = parts_of(route.path), given = parts_of(path);
  params.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i >= given.size()) return false;
    const auto w = wanted[i];
    if (w.starts_with('{') && w.ends_with("*}")) {
      params[std::string(w.substr(1, w.size() - 3))] =
          std::string(path.substr(static_cast<std::size_t>(given[i].data() - path.data())));
      return true;
    }
    if (w.starts_with('{')) {
      if (given[i].empty()) return false;
      params[std::string(w.substr(1, w.size() - 2))] = std::string(given[i]);
    } else if (w != given[i]) {
      return false;
    }
  }
  return wanted.size() == given.size();
}

}  // namespace

void Router::add(Route route) {
  routes_.push_back(std::move(route));
}

ApiResult<const Route*> Router::find(const HttpRequest& request, std::map<std::string, std::string>& params) const {
  // Azure's paths have a prefix: /openai/v1/... is the same as /v1/...
  constexpr std::string_view kAzure = "/openai", kAzureV1 = "/openai/v1/";
  const auto path = std::string_view(request.path).substr(request.path.starts_with(kAzureV1) ? kAzure.size() : 0);
  std::string methods;
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const Route& route : routes_) {
    if (!matches(route, path, params)) continue;
    if (method == route.method) return &route;
    methods += (methods.empty() ? "" : ", ") + std::string(route.method) +
               (route.method == std::string_view("GET") ? ", HEAD" : "");
  }
  if (!methods.empty()) {
    auto error = make_error(405, fmt::format("[http] {} on {}: {} allowed", request.method.substr(0, 20),
                                             request.path.substr(0, 100), methods));
    error.allow = methods;
    return std::unexpected(std::move(error));
  }
  for (const Missing& missing : kMissing)
    if (path == missing.path) {
      auto error = make_error(501, fmt::format("[http] {}: {} is not served yet", missing.path, missing.what));
      error.code = "not_implemented";
      return std::unexpected(std::move(error));
    }
  return std::unexpected(make_error(404, fmt::format("[http] there is no {}", request.path.substr(0, 100))));
}

}  // namespace zinc_rt::server
