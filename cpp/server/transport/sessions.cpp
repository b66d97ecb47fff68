#include "server/transport/sessions.h"

namespace zinc_rt::server {

Sessions::Sessions(const TransportOptions& options, Transport::Handler handler)
    : options(options),
      handler(std::move(handler)),
      bodies(std::make_shared<ByteBudget>(options.bodies)),
      inputs(std::make_shared<ByteBudget>(options.inputs)) {}

bool Sessions::enter(const std::shared_ptr<Session>& session, const std::string& address) {
  const std::lock_guard lock(mutex);
  if (is_draining || open.size() >= options.max_connections) return false;
  auto& n = by_address[address];
  if (n >= options.max_connections_per_address) return false;
  ++n;
  open.insert(session);
  return true;
}

void Sessions::leave(const std::shared_ptr<Session>& session, const std::string& address) {
  const std::lock_guard lock(mutex);
  if (open.erase(session) == 0) return;
  if (const auto it = by_address.find(address); --it->second == 0) by_address.erase(it);
  left.notify_all();
}

}  // namespace zinc_rt::server
