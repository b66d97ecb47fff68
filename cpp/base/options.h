// Defines the environment variables of the project, in one table. No other file reads the environment. `zinc-rt tiers
// --env` prints the table.
// Thread rule: reads only; the process must not change its environment meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "zinc_rt/status.h"

namespace zinc_rt::options {

struct Variable {
  std::string_view name;
  std::string_view fallback;  // the value that is used if the variable is not set
  std::string_view help;
  bool is_secret = false;  // whether the value is a secret, which is never printed
};
std::span<const Variable> variables();

// Returns the variable's value, or the table's default if it is not set. REQUIRES: `name` is in the table.
std::string get(std::string_view name);
bool is_set(std::string_view name);
// Returns the user's folder for files that must be kept after the program ends. Returns an empty text if neither the
// XDG variable nor HOME is set.
std::string state_folder();
// Returns the user's folder for files that the program can create again, or an empty text as state_folder() does.
std::string cache_folder();
// Returns the folder in which models are found by name: ZINC_RT_MODELS, or else a folder in the user's home. Returns an
// empty text if neither variable is set.
std::string models_folder();
// Returns the proxy for connections to this host, or an empty text for none. It reads the variables https_proxy,
// http_proxy, all_proxy and no_proxy as curl does.
std::string proxy_for(std::string_view scheme, std::string_view host);
// Returns the variable's value as a number in [low, high]. Errors: kInvalidArgument; the message has the name, the
// value and the range.
Result<std::int64_t> get_int(std::string_view name, std::int64_t low, std::int64_t high);

}  // namespace zinc_rt::options
