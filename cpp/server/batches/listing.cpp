#include "server/batches/listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/json_text.h"
#include "base/read_number.h"
#include "server/http/http_head.h"

namespace zinc_rt::server {
ApiResult<Json> read_query(std::string_view query) {
  Json out = Json::object();
  while (!query.empty()) {
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    std::string name, value;
    if (!percent_decode(pair.substr(0, equals), name) ||
        (equals != std::string_view::npos && !percent_decode(pair.substr(equals + 1), value)))
      return wrong_field("query", "a broken percent escape, or no UTF-8");
    if (out.contains(name)) return wrong_field(name.substr(0, 80), "it is given twice");
    out[name] = value;
  }
  return out;
}

ApiResult<ListPage> read_page(Fields& fields, std::size_t limit, std::size_t most) {
  ListPage page{limit, {}, false};
  ZRT_TRY(const auto text, fields.get_string("limit"));
  if (text && (!read_number(*text, page.limit) || page.limit < 1 || page.limit > most))
    return fields.wrong("limit", fmt::format("\"{}\" is given, 1 to {} wanted", text->substr(0, 40), most));
  ZRT_TRY(const auto after, fields.get_string("after"));
  page.after = after.value_or("");
  ZRT_TRY(const auto order, fields.get_choice("order", {"asc", "desc"}));
  page.is_ascending = order == "asc";
  return page;
}

ApiResult<std::string> list_of(ObjectTable& table, const ObjectQuery& query,
                               const std::function<std::string(const StoredObject&)>& shown) {
  const auto page = table.page(query);
  if (!page) return std::unexpected(to_api_error(page.error()));
  if (!*page) return wrong_field("after", fmt::format("there is no \"{}\"", query.after.substr(0, 100)));
  const auto& rows = (*page)->objects;
  std::string data;
  for (const auto& row : rows) data += (data.empty() ? "" : ",") + shown(row);
  const auto id_of = [&](const StoredObject& row) { return json_string(row.id); };
  return fmt::format(R"({{"object":"list","first_id":{},"last_id":{},"data":[{}],"has_more":{}}})",
                     rows.empty() ? "null" : id_of(rows.front()), rows.empty() ? "null" : id_of(rows.back()), data,
                     (*page)->has_more);
}

}  // namespace zinc_rt::server
