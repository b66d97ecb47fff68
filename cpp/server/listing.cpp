#include "server/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "server/transport/http_head.h"

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
  if (text) {
    const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), page.limit);
    if (failure != std::errc() || end != text->data() + text->size() || page.limit < 1 || page.limit > most)
      return fields.wrong("limit", fmt::format("\"{}\" is given, 1 to {} wanted", text->substr(0, 40), most));
  }
  ZRT_TRY(const auto after, fields.get_string("after"));
  page.after = after.value_or("");
  ZRT_TRY(const auto order, fields.get_choice("order", {"asc", "desc"}));
  page.is_ascending = order == "asc";
  return page;
}

ApiResult<std::string> page_of(std::vector<Json> all, const ListPage& page) {
  if (!page.is_ascending) std::ranges::reverse(all);
  auto first = all.begin();
  if (!page.after.empty()) {
    first = std::ranges::find_if(all, [&](const Json& one) { return one["id"] == page.after; });
    if (first == all.end()) return wrong_field("after", fmt::format("there is no \"{}\"", page.after.substr(0, 100)));
    ++first;
  }
  const auto n = std::min(page.limit, static_cast<std::size_t>(all.end() - first));
  const bool has_more = first + static_cast<std::ptrdiff_t>(n) != all.end();
  Json data = Json::array();
  for (auto it = first; it != first + static_cast<std::ptrdiff_t>(n); ++it) data.push_back(std::move(*it));
  Json out = Json::object();
  out["object"] = "list";
  out["first_id"] = n == 0 ? Json() : data.front()["id"];
  out["last_id"] = n == 0 ? Json() : data.back()["id"];
  out["data"] = std::move(data);
  out["has_more"] = has_more;
  return out.dump();
}

}  // namespace zinc_rt::server
