// Router finds the handler for a request's method and path.
// Thread rule: add all routes first. After that, any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "server/tenants/tenants.h"

namespace zinc_rt::server {

// Exchange is a request and its connection, while a handler works on it.
struct Exchange {
  HttpRequest request;
  std::shared_ptr<Connection> connection;
  Caller caller;  // set for routes with Access::kKey or kAdmin
  // A stop is requested if the client disconnects before its answer is complete.
  std::stop_source gone;
  std::map<std::string, std::string> params;  // key: a {name} in the route's path; value: the text in its place
  // The answer's x-request-id: the client's id, or a new id if the client sent none.
  std::string id;
  bool is_of_batch = false;  // true for a line of a batch, which runs in the lowest class
};

// Access tells which key a caller needs.
enum class Access : std::uint8_t {
  kOpen,   // no key is needed
  kKey,    // a tenant's or an admin's key
  kAdmin,  // an admin's key only
};

struct Route {
  const char* method;
  std::string path;  // such as "/v1/tenants/{id}"; a final "{name*}" matches texts with slashes too
  Access access;
  bool is_quick;  // the handler runs on the I/O thread and must not block
  std::function<void(Exchange&)> handle;
  // If not 0, the body is a form with files (multipart/form-data) of at most this many bytes.
  std::size_t max_form_bytes = 0;
};

class Router {
 public:
  void add(Route route);
  const std::vector<Route>& routes() const { return routes_; }
  // Finds the route of a request and fills in `params`. Errors: 404; 405; 501 for paths of other servers' APIs that
  // this server does not implement.
  ApiResult<const Route*> find(const HttpRequest& request, std::map<std::string, std::string>& params) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace zinc_rt::server
