// Prints tables of text for the terminal and for Markdown. Thread rule: pure functions.
#pragma once

#include <string>
#include <vector>

namespace zinc_rt::tools {

using Table = std::vector<std::vector<std::string>>;  // the first row has the column titles

std::string as_text(const Table& table);
std::string as_markdown(const Table& table);

}  // namespace zinc_rt::tools
