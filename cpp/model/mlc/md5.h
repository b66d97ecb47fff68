// MD5 (RFC 1321), by which MLC's index identifies a shard's content. It detects damage, not attacks.
// Thread rule: pure function.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace zinc_rt::mlc {

// 32 hexadecimal digits, lower case.
std::string md5_hex(std::span<const std::byte> bytes);

}  // namespace zinc_rt::mlc
