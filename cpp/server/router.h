// Method and path to the function that answers.
// Thread rule: filled before use; then any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "server/tenants.h"

namespace zinc_rt::server {

// One request on its way through a handler.
struct Exchange {
  HttpRequest request;
  std::shared_ptr<Connection> connection;
  Caller caller;                              // of kKey and kAdmin routes
  std::stop_source gone;                      // asked to stop when the client leaves before its answer is complete
  std::map<std::string, std::string> params;  // of the path's {names}
  std::string id;                             // of x-request-id: the client's own, or one of ours
};

enum class Access : std::uint8_t {
  kOpen,   // anyone
  kKey,    // a tenant's key; an admin's too
  kAdmin,  // an admin's key
};

struct Route {
  const char* method;
  std::string path;  // "/v1/tenants/{id}"; a last "{name*}" takes the slashes too
  Access access;
  bool is_quick;  // answered on the I/O thread: must not block
  std::function<void(Exchange&)> handle;
};

class Router {
 public:
  void add(Route route);
  // The route; its params. Errors: 404, 405, and 501 for what other servers have and this one has not yet.
  ApiResult<const Route*> find(const HttpRequest& request, std::map<std::string, std::string>& params) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace zinc_rt::server
