// Finds the function that answers a method and path.
// Thread rule: filled before use; then any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "server/tenants/tenants.h"

namespace zinc_rt::server {

// One request while a handler works on it.
struct Exchange {
  HttpRequest request;
  std::shared_ptr<Connection> connection;
  Caller caller;                              // known for routes of kKey and kAdmin
  std::stop_source gone;                      // stop is requested when the client leaves before its answer is complete
  std::map<std::string, std::string> params;  // values of the path's {names}
  std::string id;                             // for x-request-id: the client's, or one made here
  bool is_of_batch = false;                   // a line of a batch: it takes only what other work leaves over
};

enum class Access : std::uint8_t {
  kOpen,   // no key is needed
  kKey,    // a tenant's or an admin's key
  kAdmin,  // an admin's key only
};

struct Route {
  const char* method;
  std::string path;  // such as "/v1/tenants/{id}"; a last "{name*}" matches slashes too
  Access access;
  bool is_quick;  // answered on the I/O thread: must not block
  std::function<void(Exchange&)> handle;
  std::size_t max_form_bytes =
      0;  // not 0: the body is a form with files, multipart/form-data, of at most so many bytes
};

class Router {
 public:
  void add(Route route);
  const std::vector<Route>& routes() const { return routes_; }
  // Finds the route of a request and fills in `params`. Errors: 404; 405; 501 for paths of other servers that this one
  // does not have yet.
  ApiResult<const Route*> find(const HttpRequest& request, std::map<std::string, std::string>& params) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace zinc_rt::server
