#include "server/tenants/tenant_settings.h"

#include <algorithm>
#include <cctype>

namespace zinc_rt::server {

bool is_good_tenant_name(std::string_view name) {
  constexpr std::string_view kTaken[] = {"me", ".", ".."};
  if (std::ranges::find(kTaken, name) != std::end(kTaken)) return false;
  return !name.empty() && name.size() <= kMaxTenantNameBytes && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@' || c == ':';
  });
}

TenantSettings TenantSettings::unlimited() {
  TenantSettings settings;
  settings.quota.max_concurrent_slots = settings.quota.max_kv_pages = INT32_MAX;
  settings.quota.decode_tokens_per_s = settings.quota.prefill_tokens_per_s = 1e9;
  return settings;
}

Json TenantSettings::to_json() const {
  return Json{{"qos_class", quota.qos_class},
              {"weight", quota.weight},
              {"max_concurrent_slots", quota.max_concurrent_slots},
              {"max_kv_pages", quota.max_kv_pages},
              {"reserved_kv_pages", quota.reserved_kv_pages},
              {"max_context_tokens", quota.max_context_tokens},
              {"decode_tokens_per_s", quota.decode_tokens_per_s},
              {"prefill_tokens_per_s", quota.prefill_tokens_per_s},
              {"isolation_group", quota.isolation_group},
              {"speculate", quota.speculate},
              {"requests_per_minute", requests_per_minute},
              {"tokens_per_minute", tokens_per_minute},
              {"max_open_requests", max_open_requests},
              {"may_store", may_store},
              {"proxy", is_proxy}};
}

ApiResult<void> TenantSettings::change(const Json& json) {
  Fields fields(json);
  ApiResult<void> result;
  const auto number = [&](const char* name, double& out, double low, double high) {
    if (!result) return;
    auto value = fields.get_number(name, low, high);
    if (!value)
      result = std::unexpected(value.error());
    else if (*value)
      out = **value;
  };
  const auto count = [&](const char* name, std::uint32_t& out, std::int64_t low) {
    if (!result) return;
    auto value = fields.get_int(name, low, INT32_MAX);
    if (!value)
      result = std::unexpected(value.error());
    else if (*value)
      out = static_cast<std::uint32_t>(**value);
  };
  const auto take = [&](auto value, auto& out) {
    if (!result) return;
    if (!value)
      result = std::unexpected(value.error());
    else if (*value)
      out = **value;
  };
  take(fields.get_choice("qos_class", {"interactive", "standard", "batch"}), quota.qos_class);
  number("weight", quota.weight, 1e-6, 1e6);
  count("max_concurrent_slots", quota.max_concurrent_slots, 1);
  count("max_kv_pages", quota.max_kv_pages, 1);
  count("reserved_kv_pages", quota.reserved_kv_pages, 0);
  count("max_context_tokens", quota.max_context_tokens, 1);
  number("decode_tokens_per_s", quota.decode_tokens_per_s, 1e-3, 1e12);
  number("prefill_tokens_per_s", quota.prefill_tokens_per_s, 1e-3, 1e12);
  take(fields.get_string("isolation_group", kMaxTenantNameBytes), quota.isolation_group);
  take(fields.get_string("speculate", kMaxTenantNameBytes), quota.speculate);
  number("requests_per_minute", requests_per_minute, 0, 1e9);
  number("tokens_per_minute", tokens_per_minute, 0, 1e15);
  count("max_open_requests", max_open_requests, 1);
  take(fields.get_bool("may_store"), may_store);
  take(fields.get_bool("proxy"), is_proxy);
  if (!result) return result;
  return fields.expect_no_others();
}

}  // namespace zinc_rt::server
