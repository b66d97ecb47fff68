// Lists that clients read page by page, in the form of OpenAI's API.
// Thread rule: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "server/api/json_in.h"
#include "server/state/object_table.h"

namespace zinc_rt::server {

// A query's fields as an object of texts, for Fields. Errors: 400 for broken escapes and for a field that stands twice.
ApiResult<Json> read_query(std::string_view query);

struct ListPage {
  std::size_t limit = 20;
  std::string after;  // the id before the page's first; empty: it begins with the first
  bool is_ascending = false;
};
// Reads limit, after and order from a query's fields. Errors: 400 naming the field.
ApiResult<ListPage> read_page(Fields& fields, std::size_t limit, std::size_t most);

// {"object": "list", "data", "first_id", "last_id", "has_more"}; `shown` converts each row. Errors: 400 if `after` does
// not exist.
ApiResult<std::string> list_of(ObjectTable& table, const ObjectQuery& query,
                               const std::function<std::string(const StoredObject&)>& shown);

}  // namespace zinc_rt::server
