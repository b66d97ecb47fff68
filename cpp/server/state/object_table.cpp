#include "server/state/object_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace zinc_rt::server {

Status ObjectTable::put(const StoredObject& object) {
  return file_.in_transaction([&] {
    Statement statement(file_.db(),
                        "INSERT OR REPLACE INTO objects (kind, tenant, id, time_s, label, size, body) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?)");
    statement.bind(object.kind).bind(object.tenant).bind(object.id);
    statement.bind(static_cast<std::uint64_t>(object.time_s)).bind(object.label);
    return statement.bind(object.n_content_bytes + object.body.size()).bind(object.body).run();
  });
}

Result<std::optional<StoredObject>> ObjectTable::find(const std::string& kind, const std::string& tenant,
                                                      const std::string& id) {
  const auto reading = file_.read();
  Statement statement(reading.db,
                      "SELECT time_s, label, size, body FROM objects WHERE kind = ? AND tenant = ? AND id = ?");
  statement.bind(kind).bind(tenant).bind(id);
  if (statement.step()) {
    auto body = statement.text(3);
    const auto n_content_bytes = statement.number(2) - body.size();
    return StoredObject{
        kind,           tenant, id, static_cast<std::int64_t>(statement.number(0)), statement.text(1), n_content_bytes,
        std::move(body)};
  }
  if (!statement.is_at_end()) return file_.unreadable(reading);
  return std::nullopt;
}

Result<bool> ObjectTable::remove(const std::string& kind, const std::string& tenant, const std::string& id) {
  return file_.remove("DELETE FROM objects WHERE kind = ? AND tenant = ? AND id = ?", {kind, tenant, id});
}

Result<std::optional<ObjectPage>> ObjectTable::page(const ObjectQuery& query) {
  const auto reading = file_.read();
  std::uint64_t after_s = 0;
  if (!query.after.empty()) {
    Statement first(reading.db, "SELECT time_s FROM objects WHERE kind = ? AND tenant = ? AND id = ?");
    first.bind(query.kind).bind(query.tenant).bind(query.after);
    if (first.step())
      after_s = first.number(0);
    else if (first.is_at_end())
      return std::nullopt;
    else
      return file_.unreadable(reading);
  }
  // The index objects_by_tenant has the order of the pages, so SQLite need not read the rows before the page.
  const auto sql = fmt::format(
      "SELECT id, time_s, label, size, body FROM objects INDEXED BY objects_by_tenant WHERE tenant = ?1 AND kind = ?2 "
      "AND (?4 = '' OR label = ?4){} ORDER BY time_s {}, id {} "
      "LIMIT ?3",
      query.after.empty() ? "" : fmt::format(" AND (time_s, id) {} (?5, ?6)", query.is_ascending ? '>' : '<'),
      query.is_ascending ? "ASC" : "DESC", query.is_ascending ? "ASC" : "DESC");
  Statement statement(reading.db, sql.c_str());
  statement.bind(query.tenant).bind(query.kind).bind(std::uint64_t{query.limit} + 1);
  statement.bind(query.label);
  if (!query.after.empty()) statement.bind(after_s).bind(query.after);
  ObjectPage page;
  while (statement.step()) {
    if (page.objects.size() == query.limit) {
      page.has_more = true;
      return page;
    }
    auto body = statement.text(4);
    const auto n_content_bytes = statement.number(3) - body.size();
    page.objects.push_back({query.kind, query.tenant, statement.text(0), static_cast<std::int64_t>(statement.number(1)),
                            statement.text(2), n_content_bytes, std::move(body)});
  }
  if (!statement.is_at_end()) return file_.unreadable(reading);
  return page;
}

Result<ObjectSum> ObjectTable::sum(const std::string& kind, const std::string& tenant) {
  const auto reading = file_.read();
  Statement statement(
      reading.db, "SELECT COUNT(*), SUM(size) FROM objects INDEXED BY objects_by_tenant WHERE tenant = ? AND kind = ?");
  if (!statement.bind(tenant).bind(kind).step()) return file_.unreadable(reading);
  return ObjectSum{statement.number(0), statement.number(1)};
}

Result<std::vector<StoredObject>> ObjectTable::labelled(const std::string& kind, std::span<const char* const> labels) {
  const auto reading = file_.read();
  std::vector<StoredObject> out;
  for (const char* label : labels) {
    Statement statement(
        reading.db,
        "SELECT tenant, id, time_s, size, body FROM objects INDEXED BY objects_by_label WHERE kind = ? AND label = ?");
    statement.bind(kind).bind(label);
    while (statement.step()) {
      auto body = statement.text(4);
      const auto n_content_bytes = statement.number(3) - body.size();
      out.push_back({kind, statement.text(0), statement.text(1), static_cast<std::int64_t>(statement.number(2)), label,
                     n_content_bytes, std::move(body)});
    }
    if (!statement.is_at_end()) return file_.unreadable(reading);
  }
  std::ranges::sort(out, {}, [](const StoredObject& one) { return std::tie(one.time_s, one.id); });
  return out;
}

Result<std::vector<ObjectName>> ObjectTable::names(const std::string& kind, const std::string& tenant,
                                                   std::int64_t before_s) {
  const auto reading = file_.read();
  Statement statement(reading.db,
                      tenant.empty()
                          ? "SELECT tenant, id FROM objects INDEXED BY objects_by_time WHERE kind = ?2 AND time_s < ?3"
                          : "SELECT tenant, id FROM objects INDEXED BY objects_by_tenant WHERE tenant = ?1 AND kind = "
                            "?2 AND time_s < ?3");
  statement.bind(tenant).bind(kind).bind(static_cast<std::uint64_t>(before_s));
  std::vector<ObjectName> out;
  while (statement.step()) out.push_back({statement.text(0), statement.text(1)});
  if (!statement.is_at_end()) return file_.unreadable(reading);
  return out;
}

}  // namespace zinc_rt::server
