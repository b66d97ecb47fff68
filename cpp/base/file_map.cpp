// The part of FileMap that is the same on all systems.
#include "base/platform/file_map.h"

#include <utility>

namespace zinc_rt {

FileMap::FileMap(FileMap&& other) noexcept {
  *this = std::move(other);
}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(range_, other.range_);
  return *this;
}

}  // namespace zinc_rt
