// Names of well-known models, and where their files are. To add a model, add a row in catalogue.cpp.
// Thread rule: constants.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zinc_rt::hub {

struct CatalogueEntry {
  std::string_view name;    // as a user writes it
  std::string_view source;  // a reference of reference.h
  std::string_view size;    // about, for people
  std::string_view what;    // for people
};

std::span<const CatalogueEntry> catalogue();
const CatalogueEntry* catalogue_entry(std::string_view name);  // letter case aside; nullptr: none
std::vector<std::string> catalogue_names();

}  // namespace zinc_rt::hub
