#include "tools/units.h"

#include <fmt/format.h>

namespace zinc_rt::tools {
namespace {

std::string scaled(double value, const char* unit) {
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes < 1000) return fmt::format("{} B", bytes);
  if (value < 999.5e3) return scaled(value / 1e3, "kB");
  if (value < 999.5e6) return scaled(value / 1e6, "MB");
  return scaled(value / 1e9, "GB");
}

std::string count_text(std::uint64_t n) {
  const auto value = static_cast<double>(n);
  if (n < 1000) return fmt::format("{}", n);
  if (value < 999.5e3) return scaled(value / 1e3, "k");
  if (value < 999.5e6) return scaled(value / 1e6, "M");
  return scaled(value / 1e9, "B");
}

}  // namespace zinc_rt::tools
