// The catalogue lists names of well-known models and where their files are, for `zinc-rt pull`. To add a model, add a
// row in catalogue.cpp.
// Thread rule: constants.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zinc_rt::hub {

struct CatalogueEntry {
  std::string_view name;    // name that a user types
  std::string_view source;  // a reference that parse_reference() understands
  std::string_view size;    // approximate size, for display
  std::string_view what;    // description, for display
};

std::span<const CatalogueEntry> catalogue();
const CatalogueEntry* catalogue_entry(std::string_view name);  // ignores letter case; returns nullptr if there is none
std::vector<std::string> catalogue_names();

}  // namespace zinc_rt::hub
