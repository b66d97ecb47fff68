#include "tools/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace zinc_rt::tools {

std::string as_text(const Table& table) {
  std::vector<std::size_t> widths(table[0].size());
  for (const auto& row : table)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : table) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

std::string as_markdown(const Table& table) {
  std::string out;
  for (std::size_t i = 0; i < table.size(); ++i) {
    out += fmt::format("| {} |\n", fmt::join(table[i], " | "));
    if (i > 0) continue;
    for (std::size_t column = 0; column < table[0].size(); ++column) out += "|---";
    out += "|\n";
  }
  return out;
}

}  // namespace zinc_rt::tools
