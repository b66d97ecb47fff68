// Npz reads arrays that numpy.savez has stored, which is a zip archive of .npy files. `zinc-rt validate` compares a
// model with them. Compressed members and archives over 4 GiB are refused.
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
  std::vector<std::uint64_t> shape;  // the outermost dimension first, in C order
  std::vector<T> values;
};

class Npz {
 public:
  // Opens a file and reads its list of members. Errors: kNotFound if the file does not exist; kCorrupt if it is not a
  // zip archive of .npy files.
  static Result<Npz> open(const std::string& path);

  bool contains(const std::string& name) const { return members_.contains(name); }
  // Return the array of a member. floats() converts float16, float32 and float64 to float; integers() accepts int32 and
  // int64. Errors: kNotFound with the existing names; kInvalidArgument for a compressed member, another type or Fortran
  // order; kCorrupt for a broken member.
  Result<NpyArray<float>> floats(const std::string& name) const;
  Result<NpyArray<std::int64_t>> integers(const std::string& name) const;

 private:
  struct Member {
    std::uint16_t method = 0;
    std::uint64_t header = 0, bytes = 0;  // offset of the local header; size of the data
  };
  struct Npy {
    std::string type;
    std::vector<std::uint64_t> shape;
    std::uint64_t n_values = 1;
    std::span<const std::byte> data;
  };
  Result<Npy> member(const std::string& name) const;

  MappedFile file_;
  std::map<std::string, Member> members_;  // the names without ".npy"
};

}  // namespace zinc_rt
