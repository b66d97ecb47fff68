// Reads JSON files of an MLC folder, which are not trusted, within limits of size and depth. An error names the file,
// the key and its value.
// Thread rule: a Fields is a view, so the document must outlive it. Reading is const.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zinc_rt/status.h"

namespace zinc_rt::mlc {

using Json = nlohmann::json;

// Parses a JSON text. `place` names the file in messages. Errors: kCorrupt if the text is not JSON or is nested deeper
// than 64 levels.
Result<Json> parse_json(std::string_view text, std::string_view place);

// Returns the content of a file. Errors: kNotFound if it does not exist; kCorrupt if it is larger than 512 MiB.
Result<std::string> read_text(const std::string& path);

// Fields reads the members of a JSON object and checks their types. `place` is the object's name in error messages,
// such as "DIR/ndarray-cache.json: records[3]".
class Fields {
 public:
  static Result<Fields> of(const Json& value, std::string place);

  // Returns the member, or nullptr if the key is absent or its value is null.
  const Json* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // Each of the following functions returns a member as one C++ type. Errors: kNotFound if the key is absent; kCorrupt
  // for another type or a number outside [least, most]. The *_or forms return `fallback` instead of kNotFound.
  Result<std::uint64_t> count(std::string_view key, std::uint64_t least, std::uint64_t most) const;
  Result<std::uint64_t> count_or(std::string_view key, std::uint64_t least, std::uint64_t most,
                                 std::uint64_t fallback) const;
  Result<double> number_or(std::string_view key, double least, double most, double fallback) const;
  Result<bool> flag_or(std::string_view key, bool fallback) const;
  Result<std::string> string(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string_view fallback) const;
  Result<const Json*> array(std::string_view key) const;
  Result<Fields> object(std::string_view key) const;

  const std::string& place() const { return place_; }
  std::string at(std::string_view key) const;  // place and key, with which every message begins

 private:
  Fields(const Json* object, std::string place) : object_(object), place_(std::move(place)) {}
  Result<const Json*> need(std::string_view key, std::string_view wanted) const;

  const Json* object_;
  std::string place_;
};

// Describes a value for an error message, for example "string", "number 12" or "array of 3".
std::string describe(const Json& value);

}  // namespace zinc_rt::mlc
