// T-CUDA's buffer objects: device memory, and pinned host memory that the device sees at the same address.
// Thread rule: as Ring; the device's context is current.
#pragma once

#include <map>
#include <tuple>

#include "ring/buffer_objects.h"
#include "ring/cuda/driver.h"

namespace zinc_rt::ring {

// A buffer object: its memory and size. is_host: pinned host memory, else device memory. has_weights: no step writes
// it. is_import: another object owns the memory.
struct CudaObject {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
  bool is_host = false, has_weights = false, is_import = false;
};

// Allocates and frees the buffer objects of a CudaRing, and finds their addresses.
class CudaMemory : public BufferObjects<CudaObject> {
 public:
  explicit CudaMemory(const Driver& driver) : BufferObjects("t_cuda"), driver_(driver) {}
  ~CudaMemory() { clear(); }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  void clear();  // frees all buffer objects

  // Allocates a buffer object. Device memory is zeroed on `stream`, before later work there runs. Errors: kExhausted
  // with the requested and the available bytes.
  Result<Buffer> alloc(std::uint64_t bytes, Heap heap, CUstream stream);
  // Makes an object of the memory of an object of `owner`, which must outlive it. Errors: kInvalidArgument if that object
  // does not exist.
  Result<Buffer> import(const CudaMemory& owner, const Buffer& buffer);
  void free(const Buffer& buffer);
  Result<std::span<std::byte>> map(const Buffer& buffer) const;

  bool is_host(std::uint32_t bo) const { return at(bo).is_host; }
  // Marks the object as weights, which no step changes.
  void mark_weights(std::uint32_t bo) { at(bo).has_weights = true; }
  bool has_weights(std::uint32_t bo) const { return at(bo).has_weights; }
  std::byte* address(const Binding& binding) const {
    return binding.bo == 0 ? nullptr : at(binding.bo).data + binding.offset;
  }
  // Returns device memory for a copy of a binding in host memory. It is allocated on the first call and is not included
  // in allocated_bytes().
  Result<std::byte*> shadow(const Binding& binding);
  std::uint64_t allocated_bytes() const { return allocated_; }
  std::uint64_t imported_bytes() const { return imported_; }

 private:
  const Driver& driver_;
  // key: bo, offset, bytes.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::byte*> shadows_;
  std::uint64_t allocated_ = 0, imported_ = 0;
};

// Allocates device memory. Errors: kExhausted with the requested and the free bytes.
Result<std::byte*> alloc_device(const Driver& driver, std::uint64_t bytes);

}  // namespace zinc_rt::ring
