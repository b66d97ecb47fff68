// Handles /v1/batches.
#include "base/error.h"
#include "server/batches/listing.h"
#include "server/core.h"

namespace zinc_rt::server {
namespace {

constexpr std::size_t kBatchesShown = 20, kMostBatchesShown = 100;

ApiResult<std::string> create_batch(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  ZRT_TRY(const auto body, read_object(exchange.request));
  ZRT_TRY(const auto batch, core.batches.create(tenant, body));
  return batch.dump();
}

ApiResult<std::string> list_batches(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  ZRT_TRY(const auto query, read_query(exchange.request.query));
  Fields fields(query);
  ZRT_TRY(const auto page, read_page(fields, kBatchesShown, kMostBatchesShown));
  ZRT_CHECK_OK(fields.expect_no_others());
  return core.batches.list(tenant, page);
}

ApiResult<std::string> show_batch(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  ZRT_TRY(const auto batch, core.batches.find(tenant, exchange.params.at("id")));
  return batch.dump();
}

ApiResult<std::string> cancel_batch(ServerCore& core, const Exchange& exchange) {
  ZRT_TRY(const auto tenant, tenant_name(exchange));
  ZRT_CHECK_OK(expect_no_fields(exchange.request));
  ZRT_TRY(const auto batch, core.batches.cancel(tenant, exchange.params.at("id")));
  return batch.dump();
}

}  // namespace

void add_batch_routes(Router& router, ServerCore& core) {
  router.add({"POST", "/v1/batches", Access::kKey, false, answering(core, create_batch)});
  router.add({"GET", "/v1/batches", Access::kKey, false, answering(core, list_batches)});
  router.add({"GET", "/v1/batches/{id}", Access::kKey, false, answering(core, show_batch)});
  router.add({"POST", "/v1/batches/{id}/cancel", Access::kKey, false, answering(core, cancel_batch)});
}

}  // namespace zinc_rt::server
