// TenantSettings holds the limits of a tenant. is_good_tenant_name() checks a tenant's name.
// Thread rule: plain values.
#pragma once

#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/api/json_in.h"
#include "zinc_rt/engine.h"

namespace zinc_rt::server {

constexpr std::size_t kMaxTenantNameBytes = 128;
// Returns whether a text can be a tenant's name. Names appear in paths (/v1/tenants/{id}), logs and metrics. In paths
// `me` means the caller's own tenant, so no tenant may have that name.
bool is_good_tenant_name(std::string_view name);
inline constexpr const char* kGoodTenantName = "1 to 128 letters, digits and -_.@: wanted, and neither me, . nor ..";

// TenantSettings holds the quota, which the engine enforces, and the limits that the server enforces. A limit of 0
// means no limit.
struct TenantSettings {
  TenantQuota quota;
  double requests_per_minute = 0, tokens_per_minute = 0;
  std::uint32_t max_open_requests = 4096;  // the most open choices (prompts times n) of the tenant's requests
  bool may_store = false;                  // answers of /v1/responses are stored unless a request has "store": false
  bool is_proxy = false;  // requests may name another tenant, in the header x-gateway-inference-fairness-id

  // Returns settings without limits on slots, pages and rates, for a machine with one user.
  static TenantSettings unlimited();
  Json to_json() const;
  // Changes the fields that `json` names. Errors: 400 that names the field.
  ApiResult<void> change(const Json& json);
};

}  // namespace zinc_rt::server
