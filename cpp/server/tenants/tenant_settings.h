// The limits of a tenant, and the rules for its name.
// Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/api/json_in.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

constexpr std::size_t kMaxTenantNameBytes = 128;
// Names appear in paths (/v1/tenants/{id}), logs and metrics. In paths `me` is the caller, so no tenant may have that
// name.
bool is_good_tenant_name(std::string_view name);
inline constexpr const char* kGoodTenantName = "1 to 128 letters, digits and -_.@: wanted, and neither me, . nor ..";

// The quota, which the engine enforces, and the limits that the server enforces. 0: no limit.
struct TenantSettings {
  TenantQuota quota;
  double requests_per_minute = 0, tokens_per_minute = 0;
  std::uint32_t max_open_requests = 4096;  // counted in choices
  bool may_store = false;  // its answers of /v1/responses may be kept, and are unless a request says "store": false
  bool is_proxy = false;   // its requests may be on behalf of others, named in x-gateway-inference-fairness-id

  // For a single user of the machine: no limits on slots, pages and rates.
  static TenantSettings unlimited();
  Json to_json() const;
  // Changes the fields that `json` names. Errors: 400 naming the field.
  ApiResult<void> change(const Json& json);
};

}  // namespace zinc_rt::server
