#include "ring/gpu/symbols.h"

namespace zinc_rt::ring::gpu {

std::vector<std::string> table_symbols(std::string_view names) {
  constexpr std::string_view kBetween = ", ";
  std::vector<std::string> list;
  for (std::size_t at = 0; at < names.size();) {
    const std::string_view name = names.substr(at, names.find(kBetween, at) - at);
    at += name.size() + kBetween.size();
    const std::size_t end = name.find('_');
    const std::string_view kind = name.substr(0, end);
    if (kind == "dtype" || kind == "pitch" || kind == "attr")
      list.push_back(std::string(kind) + ":" + std::string(name.substr(end + 1)));
    else
      list.push_back("dim:" + std::string(name));
  }
  return list;
}

}  // namespace zinc_rt::ring::gpu
