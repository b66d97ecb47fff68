// Cursor is the bounds-checked read position of the GGUF parser in a file's header. Each error names the file, what was
// being read, and both numbers (for example bytes needed and bytes left).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace zinc_rt::gguf {

static_assert(std::endian::native == std::endian::little, "values are copied out of the file as they lie");

class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::string_view place) : bytes_(bytes), place_(place) {}

  std::uint64_t pos() const { return pos_; }
  std::uint64_t remaining() const { return bytes_.size() - pos_; }
  std::string_view place() const { return place_; }
  // Returns the name of the item that is being read, such as `key "a.b"` or `tensor table entry 5`. Error messages show
  // it.
  const std::string& where() const { return where_; }
  void set_where(std::string where) { where_ = std::move(where); }

  Status need(std::uint64_t n_bytes) const {
    if (n_bytes <= remaining()) return {};
    return fail(StatusCode::kCorrupt, "[gguf] {}: {}: needs {} bytes at offset {}, {} there", place_, where_, n_bytes,
                pos_, remaining());
  }

  template <class T>
  Status read(T& out) {
    ZRT_CHECK_OK(need(sizeof(T)));
    std::memcpy(&out, bytes_.data() + pos_, sizeof(T));
    pos_ += sizeof(T);
    return {};
  }

  // Reads a string that the file stores as a length and then its bytes. Errors: kCorrupt if it is longer than
  // max_bytes.
  Status read_string(std::string& out, std::uint64_t max_bytes) {
    std::uint64_t n_bytes = 0;
    ZRT_CHECK_OK(read(n_bytes));
    if (n_bytes > max_bytes)
      return fail(StatusCode::kCorrupt, "[gguf] {}: {}: string of {} bytes, at most {} allowed", place_, where_,
                  n_bytes, max_bytes);
    ZRT_CHECK_OK(need(n_bytes));
    out.assign(reinterpret_cast<const char*>(bytes_.data() + pos_), n_bytes);
    pos_ += n_bytes;
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view place_;
  std::string where_;
  std::uint64_t pos_ = 0;
};

}  // namespace zinc_rt::gguf
