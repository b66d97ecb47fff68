// Handles /v1/tenants: what tenants may use, and what they have used.
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

// Returns the tenant that the path names. Callers may name only themselves; admins may name any tenant.
ApiResult<std::shared_ptr<TenantEntry>> tenant_of(ServerCore& core, const Exchange& exchange) {
  const auto& id = exchange.params.at("id");
  const bool is_own = exchange.caller.tenant && (id == "me" || exchange.caller.tenant->name == id);
  if (is_own) return exchange.caller.tenant;
  if (!exchange.caller.is_admin)
    return std::unexpected(make_error(403, "[tenants] a tenant sees itself alone; an admin's key sees all"));
  if (auto entry = core.tenants.find(id)) return entry;
  return std::unexpected(make_error(404, fmt::format("[tenants] there is no \"{}\"", id)));
}

// Returns the part of a key's hash that is shown: its first digits, as they are written in the configuration file.
// These digits suffice to distinguish keys.
constexpr std::string_view kHashScheme = "sha256:";
constexpr std::size_t kLeastDigits = 8, kShownDigits = 16;
std::string shown_hash(const std::string& hash) {
  return std::string(kHashScheme) + hash.substr(0, kShownDigits);
}

Json describe_tenant(const TenantEntry& entry) {
  return Json{{"id", entry.name},
              {"object", "tenant"},
              {"configured", entry.is_configured.load()},
              {"open_requests", entry.n_open()},
              {"settings", entry.settings().to_json()}};
}

Json ledger_json(const TenantLedger& l) {
  return Json{{"slots_now", l.slots_now},
              {"waiting_now", l.waiting_now},
              {"kv_pages_now", l.kv_pages_now},
              {"kv_pages_peak", l.kv_pages_peak},
              {"tokens_prompted", l.tokens_prompted},
              {"tokens_cached", l.tokens_cached},
              {"tokens_generated", l.tokens_generated},
              {"requests_finished", l.requests_finished},
              {"requests_cancelled", l.requests_cancelled},
              {"requests_failed", l.requests_failed},
              {"requests_rejected", l.requests_rejected},
              {"requests_too_slow", l.requests_too_slow},
              {"slots_preempted", l.slots_preempted},
              {"prefix_hit_rate", l.prefix_hit_rate},
              {"service", l.service},
              {"ttft_ms", {{"p50", l.p50_ttft_ms}, {"p99", l.p99_ttft_ms}}},
              {"decode_ms", {{"p50", l.p50_decode_ms}, {"p99", l.p99_decode_ms}}},
              {"queue_ms", {{"p50", l.p50_queue_ms}, {"p99", l.p99_queue_ms}}}};
}

// Returns a tenant's usage: the sums in the ledger, which are kept for ever, and the engine's counters since it
// started.
ApiResult<std::string> usage(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto entry, tenant_of(core, exchange));
  const auto totals = core.store->totals(entry->name);
  if (!totals) return std::unexpected(to_api_error(totals.error()));
  UsageTotal sum;
  Json days = Json::array();
  for (const auto& t : *totals) {
    sum.requests += t.requests;
    sum.prompt_tokens += t.prompt_tokens;
    sum.cached_tokens += t.cached_tokens;
    sum.completion_tokens += t.completion_tokens;
    days.push_back({{"day", t.day},
                    {"model", t.model},
                    {"finish_reason", t.finish},
                    {"requests", t.requests},
                    {"prompt_tokens", t.prompt_tokens},
                    {"cached_tokens", t.cached_tokens},
                    {"completion_tokens", t.completion_tokens}});
  }
  return Json{{"tenant", entry->name},
              {"requests", sum.requests},
              {"prompt_tokens", sum.prompt_tokens},
              {"cached_tokens", sum.cached_tokens},
              {"completion_tokens", sum.completion_tokens},
              {"total_tokens", sum.prompt_tokens + sum.completion_tokens},
              {"by_day", std::move(days)},
              {"since_start", ledger_json(entry->tenant.ledger())}}
      .dump();
}

ApiResult<std::string> list_tenants(ServerCore& core, const Exchange&) {
  Json all = Json::array();
  for (const auto& entry : core.tenants.list()) all.push_back(describe_tenant(*entry));
  return Json{{"object", "list"}, {"data", std::move(all)}}.dump();
}

ApiResult<std::string> show_one(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto entry, tenant_of(core, exchange));
  return describe_tenant(*entry).dump();
}

// Creates a tenant. The body is {"id": ..., settings...}.
ApiResult<std::string> create(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(auto body, read_object(exchange.request));
  if (!body.contains("id") || !body["id"].is_string()) return Fields(body).wrong("id", "a name wanted");
  const auto id = body["id"].get<std::string>();
  body.erase("id");
  ZRT_TRY(const auto created, core.tenants.create(id, body));
  auto out = describe_tenant(*created.entry);
  out["api_key"] = created.key;  // the only time that the key is shown
  return out.dump();
}

ApiResult<std::string> change(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto body, read_object(exchange.request));
  ZRT_TRY(const auto entry, core.tenants.change(exchange.params.at("id"), body));
  return describe_tenant(*entry).dump();
}

ApiResult<std::string> remove(ServerCore& core, const Exchange& exchange) {
  const auto& id = exchange.params.at("id");
  ZRT_CHECK_OK(expect_no_fields(exchange.request));
  const auto files = core.files.names(id);  // read now, because the rows that list the files are removed below
  ZRT_CHECK_OK(core.tenants.remove(id));
  core.batches.forget(id);
  if (files) core.files.remove_contents(*files);
  return Json{{"id", id}, {"deleted", true}}.dump();
}

ApiResult<std::string> add_key(ServerCore& core, const Exchange& exchange) {
  const auto& id = exchange.params.at("id");
  ZRT_CHECK_OK(expect_no_fields(exchange.request));
  ZRT_TRY(const auto made, core.tenants.add_key(id));
  return Json{{"id", id}, {"api_key", made.key}, {"hash", shown_hash(made.hash)}}.dump();
}

ApiResult<std::string> list_keys(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto entry, tenant_of(core, exchange));
  Json all = Json::array();
  for (const auto& key : core.tenants.keys(entry->name))
    all.push_back({{"object", "api_key"},
                   {"hash", shown_hash(key.hash)},
                   {"created", key.made_s == 0 ? Json() : Json(key.made_s)},
                   {"configured", key.is_configured}});
  return Json{{"object", "list"}, {"data", std::move(all)}}.dump();
}

ApiResult<std::string> revoke_key(ServerCore& core, const Exchange& exchange) {
  ZRT_CHECK_OK(expect_no_fields(exchange.request));
  std::string_view prefix = exchange.params.at("hash");
  if (prefix.starts_with(kHashScheme)) prefix.remove_prefix(kHashScheme.size());
  if (prefix.size() < kLeastDigits || prefix.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::unexpected(
        make_error(400, fmt::format("[keys] at least {} digits of a key's hash wanted, in lower case", kLeastDigits)));
  const auto& id = exchange.params.at("id");
  ZRT_TRY(const auto hash, core.tenants.revoke_key(id, prefix));
  log().info("key {} of tenant {} was revoked", shown_hash(hash), id);
  return Json{{"id", id}, {"hash", shown_hash(hash)}, {"revoked", true}}.dump();
}

ApiResult<std::string> flush(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto entry, tenant_of(core, exchange));
  ZRT_CHECK_OK(expect_no_fields(exchange.request));
  const auto pages = entry->tenant.flush_prefix_cache();
  if (!pages) return std::unexpected(to_api_error(pages.error()));
  return Json{{"id", entry->name}, {"pages_freed", *pages}}.dump();
}

void add_tenant_route(Router& router, ServerCore& core, const char* method, const char* path, Access access,
                      ApiResult<std::string> (*work)(ServerCore&, const Exchange&), int status = 200) {
  router.add({method, path, access, false, [&core, work, status](Exchange& exchange) {
                answer_with(core, exchange, work(core, exchange), status);
              }});
}

}  // namespace

void add_tenant_routes(Router& router, ServerCore& core) {
  add_tenant_route(router, core, "GET", "/v1/tenants", Access::kAdmin, list_tenants);
  add_tenant_route(router, core, "POST", "/v1/tenants", Access::kAdmin, create, 201);
  add_tenant_route(router, core, "GET", "/v1/tenants/{id}", Access::kKey, show_one);
  add_tenant_route(router, core, "PATCH", "/v1/tenants/{id}", Access::kAdmin, change);
  add_tenant_route(router, core, "DELETE", "/v1/tenants/{id}", Access::kAdmin, remove);
  add_tenant_route(router, core, "GET", "/v1/tenants/{id}/usage", Access::kKey, usage);
  add_tenant_route(router, core, "POST", "/v1/tenants/{id}/keys", Access::kAdmin, add_key, 201);
  add_tenant_route(router, core, "GET", "/v1/tenants/{id}/keys", Access::kKey, list_keys);
  add_tenant_route(router, core, "DELETE", "/v1/tenants/{id}/keys/{hash}", Access::kAdmin, revoke_key);
  add_tenant_route(router, core, "POST", "/v1/tenants/{id}/flush_prefix_cache", Access::kKey, flush);
}

}  // namespace zinc_rt::server
