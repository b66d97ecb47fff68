// The environment variables of the project. No other file reads the environment. `zinc-rt tiers --env` prints this
// table.
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
  std::string_view fallback;  // its value when it is not set
  std::string_view help;
  bool is_secret = false;  // its value is never printed
};
std::span<const Variable> variables();

// The variable's value, or the table's default. REQUIRES: `name` is in the table.
std::string get(std::string_view name);
bool is_set(std::string_view name);
// The user's folder for files that must be kept after the program ends; empty if there is neither the XDG variable nor
// HOME.
std::string state_folder();
// The user's folder for files that the program can create again; empty as for state_folder().
std::string cache_folder();
// The folder in which models are found by name: ZINC_RT_MODELS, else one in the user's home; empty if there is neither.
std::string models_folder();
// The proxy for a scheme and host by the variables https_proxy, http_proxy, all_proxy and no_proxy, with curl's rules;
// Returns an empty text for no proxy.
std::string proxy_for(std::string_view scheme, std::string_view host);
// The value as a number in [low, high]. Errors: kInvalidArgument; the message has the name, the value and the range.
Result<std::int64_t> get_int(std::string_view name, std::int64_t low, std::int64_t high);

}  // namespace zinc_rt::options
