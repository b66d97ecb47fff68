// MD5 (RFC 1321), which MLC's index uses to name the content of a shard. It tells damage, not malice.
// Thread rule: pure function.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace zinc_rt::mlc {

// 32 hexadecimal digits, lower case.
std::string md5_hex(std::span<const std::byte> bytes);

}  // namespace zinc_rt::mlc
