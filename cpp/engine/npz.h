// Reads arrays that numpy.savez stored: a zip archive of .npy files. Refuses compressed members and archives over 4
// GiB.
// Thread rule: immutable after open.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "zinc_rt/status.h"

namespace zinc_rt {

template <class T>
struct NpyArray {
  std::vector<std::uint64_t> shape;  // outermost first; C order
  std::vector<T> values;
};

class Npz {
 public:
  // Errors: kNotFound if the file does not exist, kCorrupt if it is not such an archive.
  static Result<Npz> open(const std::string& path);

  bool contains(const std::string& name) const { return members_.contains(name); }
  // Errors: kNotFound with the existing names; kInvalidArgument for a compressed member, an unsupported type (floats:
  // float16, float32, float64, rounded to float; integers: int32, int64) or Fortran order; kCorrupt for a broken
  // member.
  Result<NpyArray<float>> floats(const std::string& name) const;
  Result<NpyArray<std::int64_t>> integers(const std::string& name) const;

 private:
  struct Member {
    std::uint16_t method = 0;
    std::uint64_t header = 0, bytes = 0;  // of the local header; of the data
  };
  struct Npy {
    std::string type;
    std::vector<std::uint64_t> shape;
    std::uint64_t n_values = 1;
    std::span<const std::byte> data;
  };
  Result<Npy> member(const std::string& name) const;

  MappedFile file_;
  std::map<std::string, Member> members_;  // without ".npy"
};

}  // namespace zinc_rt
