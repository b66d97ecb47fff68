// Formats numbers for display. Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace zinc_rt::tools {

std::string bytes_text(std::uint64_t bytes);  // such as 512 B, 98.1 MB, 5.03 GB; 1 MB is 10^6 bytes
std::string count_text(std::uint64_t n);      // such as 950, 134.5 M, 8.19 B

}  // namespace zinc_rt::tools
