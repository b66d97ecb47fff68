// Reads which page of a list a client wants, and writes that page, in the form of OpenAI's API.
// Thread rule: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/api/json_in.h"
#include "server/state/object_table.h"

namespace zinc_rt::server {

// Returns a URL query's fields as a JSON object of texts, for Fields. Errors: 400 for malformed escapes and for a
// repeated field.
ApiResult<Json> read_query(std::string_view query);

// ListPage tells which page of a list a client wants.
struct ListPage {
  std::size_t limit = 20;
  std::string after;  // the page begins after this id; empty: at the first object
  bool is_ascending = false;
};
// Reads limit, after and order from a query's fields. Errors: 400 that names the field.
ApiResult<ListPage> read_page(Fields& fields, std::size_t limit, std::size_t most);

// Returns {"object": "list", "data", "first_id", "last_id", "has_more"}. `shown` returns the JSON text of a row.
// Errors: 400 if no object has the id `after`.
ApiResult<std::string> list_of(ObjectTable& table, const ObjectQuery& query,
                               const std::function<std::string(const StoredObject&)>& shown);

}  // namespace zinc_rt::server
