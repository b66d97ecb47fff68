// Table reads the keys of one table of the configuration file.
// Thread rule: plain values.
#pragma once

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <concepts>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/api/json_in.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

// KeysOfTables maps each table's heading, as written in files ("[server]", "[[models]]"), to the table's keys. The
// heading "" is the top of the file.
using KeysOfTables = std::map<std::string, std::set<std::string>>;

// Reads the keys of a table one by one. A key of the file that no call has read is an error. If such a key exists in
// another table, the message names this table. The first error goes to `status`. REQUIRES: everything passed in
// outlives the object.
class Table {
 public:
  Table(const toml::table& table, std::string heading, Status& status, const KeysOfTables& all)
      : table_(table), heading_(std::move(heading)), status_(status), all_(all) {}
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  template <class T>
  void take(const char* key, T& out) {
    const toml::node* node = get(key);
    if (node == nullptr) return;
    using Wide = std::conditional_t<std::is_same_v<T, bool> || std::is_same_v<T, std::string>, T,
                                    std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>>;
    const auto value = node->value<Wide>();
    bool fits = value.has_value();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) fits = fits && std::in_range<T>(*value);
    if (!fits) return complain(*node, key, "its value is of the wrong kind, or out of range");
    out = static_cast<T>(*value);
  }
  // Reads a number as take() does. 0 is an error, because with 0 no request could be served.
  template <class T>
  void take_count(const char* key, T& out) {
    take(key, out);
    if (out == 0) complain(*get(key), key, "0 is given, at least 1 wanted");
  }
  const toml::node* get(const char* key) {
    known_.insert(key);
    return table_.get(key);
  }
  // Returns the node of a value, or `otherwise` if the value is missing.
  const toml::node& node_of(const std::string& key, const toml::node& otherwise) const {
    const toml::node* node = table_.get(key);
    return node == nullptr ? otherwise : *node;
  }
  void complain(const toml::node& node, const std::string& key, const std::string& what);
  // Reads a list of strings. `refuse` checks each string. It returns an empty text for an accepted string, else what is
  // expected instead.
  void take_strings(const char* key, std::vector<std::string>& out,
                    std::string_view (*refuse)(std::string_view) = nullptr);
  // Reads a list of device numbers. The engine checks the list as a whole when it loads the model.
  void take(const char* key, std::vector<std::uint32_t>& out);
  // Reads a list of hashes, each "sha256:" and 64 hex digits.
  void take_hashes(const char* key, std::vector<std::string>& out);
  // Returns the given keys and their values as a JSON object, as in the body of an API request.
  Json take_json(const std::set<std::string>& keys);

  // Returns the keys that were read so far.
  const std::set<std::string>& known() const { return known_; }
  // Returns the whole table as JSON, so that two files can be compared.
  Json to_json() const;

 private:
  const toml::table& table_;
  const std::string heading_;
  Status& status_;
  const KeysOfTables& all_;
  std::set<std::string> known_;
};

}  // namespace zinc_rt::server
