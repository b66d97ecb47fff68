// Computes MD5 (RFC 1321), with which MLC's index identifies the content of a shard. It detects damage, not attacks.
// Thread rule: pure function.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace zinc_rt::mlc {

// Returns the digest as 32 lower-case hexadecimal digits.
std::string md5_hex(std::span<const std::byte> bytes);

}  // namespace zinc_rt::mlc
