#include "server/config_table.h"

#include <algorithm>

#include "base/error.h"
#include "base/near_name.h"

namespace zinc_rt::server {
namespace {

constexpr std::string_view kHashOfNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Converts a TOML value to JSON. Returns null for a time or a table, because no key has such a value.
Json json_of(const toml::node& node) {
  if (const auto value = node.as_boolean()) return value->get();
  if (const auto value = node.as_integer()) return value->get();
  if (const auto value = node.as_floating_point()) return value->get();
  if (const auto value = node.as_string()) return value->get();
  if (const auto* list = node.as_array(); list != nullptr) {
    Json out = Json::array();
    for (const toml::node& one : *list) out.push_back(json_of(one));
    return out;
  }
  return nullptr;
}

std::string_view refuse_hash(std::string_view text) {
  const bool is_hash = text.size() == 71 && text.starts_with("sha256:") &&
                       text.find_first_not_of("0123456789abcdef", 7) == std::string_view::npos;
  if (!is_hash) return "\"sha256:\" and 64 hex digits wanted; `zinc-rt key` makes a key and its hash";
  return text.substr(7) == kHashOfNothing ? "this is the hash of an empty key" : "";
}

}  // namespace

Table::~Table() {
  for (const auto& [name, value] : table_) {
    const std::string key(name.str());
    if (known_.contains(key)) continue;
    std::string having;
    for (const auto& [heading, keys] : all_)
      if (heading != heading_ && keys.contains(key))
        having += (having.empty() ? "" : ", ") + (heading.empty() ? "the top of the file" : heading);
    if (having.empty()) {
      const std::vector<std::string> names(known_.begin(), known_.end());
      complain(value, key, "no such key is known" + did_you_mean(key, names));
    } else {
      complain(value, key, "no such key is known here; it belongs into " + having);
    }
  }
}

void Table::complain(const toml::node& node, const std::string& key, const std::string& what) {
  if (!status_) return;
  const auto path = heading_.substr(std::min(heading_.find_first_not_of('['), heading_.size()));
  const auto at = path.substr(0, path.find(']'));
  status_ = fail(StatusCode::kInvalidArgument, "line {}: {}{}{}: {}", node.source().begin.line, at,
                 at.empty() ? "" : ".", key, what);
}

void Table::take_strings(const char* key, std::vector<std::string>& out, std::string_view (*refuse)(std::string_view)) {
  const toml::node* node = get(key);
  if (node == nullptr) return;
  const auto* list = node->as_array();
  if (list == nullptr) return complain(*node, key, "a list wanted");
  for (const toml::node& one : *list) {
    const auto text = one.value<std::string>();
    std::string_view wanted = one.is_string() ? "" : "a string wanted";
    if (wanted.empty() && refuse != nullptr) wanted = refuse(*text);
    if (!wanted.empty()) return complain(one, key, std::string(wanted));
    out.push_back(*text);
  }
}

void Table::take(const char* key, std::vector<std::uint32_t>& out) {
  const toml::node* node = get(key);
  if (node == nullptr) return;
  const auto* list = node->as_array();
  if (list == nullptr) return complain(*node, key, "a list wanted, as [0, 1]");
  out.clear();
  for (const toml::node& one : *list) {
    const auto number = one.value<std::int64_t>();
    if (!one.is_integer() || !std::in_range<std::uint32_t>(*number))
      return complain(one, key, "the number of a device wanted, from 0 on");
    out.push_back(static_cast<std::uint32_t>(*number));
  }
}

void Table::take_hashes(const char* key, std::vector<std::string>& out) {
  const std::size_t first = out.size();
  take_strings(key, out, refuse_hash);
  for (std::size_t i = first; i < out.size(); ++i) out[i].erase(0, 7);
}

Json Table::take_json(const std::set<std::string>& keys) {
  Json out = Json::object();
  for (const auto& key : keys) {
    const toml::node* node = get(key.c_str());
    if (node == nullptr) continue;
    if (node->is_boolean() || node->is_number() || node->is_string())
      out[key] = json_of(*node);
    else
      complain(*node, key, "its value is of the wrong kind");
  }
  return out;
}

Json Table::to_json() const {
  Json out = Json::object();
  for (const auto& [name, value] : table_) out[std::string(name.str())] = json_of(value);
  return out;
}

}  // namespace zinc_rt::server
