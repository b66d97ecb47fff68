// Reads K and V of one slot and kv head, a page at a time, as floats. Attention of few rows (attend_body.h) and of many
// rows (attend_blocks.h) use these functions. Included after a lanes header.
#pragma once

#include "kernels/common/kv_page.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu_simd/lanes_math.h"

namespace zinc_rt::cpu_simd {
namespace {

constexpr std::uint32_t kPage = kPageTokens, kChunk = cpu::kAttendChunk, kRows = cpu::kAttendRows;
constexpr std::uint64_t kLine = 64;  // bytes of a cache line

ZRT_SIMD std::uint32_t least(std::uint32_t a, std::uint32_t b) {
  return a < b ? a : b;
}
ZRT_SIMD std::uint32_t most(std::uint32_t a, std::uint32_t b) {
  return a > b ? a : b;
}
ZRT_SIMD std::uint32_t padded(std::uint32_t n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

// Describes the K or the V of one slot and kv head in the paged cache.
struct Cache {
  const std::byte* memory;
  const std::int32_t* pages;
  // Distances in bytes: between pages (pitch), between the cells of two tokens (cell), and from the start of a cell to
  // the kv head's part (head).
  std::uint64_t pitch, cell, head;
  DType kv;
  std::uint32_t dim;
};
ZRT_SIMD std::uint64_t bytes_of(DType kv, std::uint64_t n) {
  return kv == DType::kF32 ? 4 * n : kv == DType::kF16 ? 2 * n : n / 32 * 34;
}
// Returns the K or V of a slot for cells in which K and V have the same type. Rotated and integer cells have their own
// code in attend_rotated.h and attend_integer.h.
ZRT_SIMD Cache cache_of(const cpu::AttendTile& tile, const void* memory, std::uint64_t pitch, std::uint32_t dim,
                        std::int32_t slot) {
  return {static_cast<const std::byte*>(memory),
          tile.page_table + static_cast<std::int64_t>(slot) * tile.pages_per_slot,
          pitch,
          bytes_of(tile.k_type, std::uint64_t{tile.shape.n_kv_heads} * dim),
          bytes_of(tile.k_type, std::uint64_t{tile.kv_head} * dim),
          tile.k_type,
          dim};
}

// Describes a page's keys or values. The row of token j consists of the padded(dim) values from values + j * pitch on.
template <class T>
struct Page {
  const T* values;
  std::uint64_t pitch;
  std::int64_t ahead = 0;  // bytes from the value that is read to the value that is prefetched
};
using WidePage = Page<float>;
// Half is the type of f16 values. A page of them is read in place if the length of its rows is a multiple of 16.
using Half = std::uint16_t;
ZRT_SIMD Part load_part(const Half* p) {
  return load_part_f16(p);
}

ZRT_SIMD void widen_f32(const std::byte* from, float* to, std::uint32_t n) {
  std::memcpy(to, from, 4 * std::uint64_t{n});
  for (std::uint32_t i = n; i < padded(n); ++i) to[i] = 0.0f;
}
ZRT_SIMD void widen_f16(const std::byte* from, float* to, std::uint32_t n) {
  std::uint32_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, load_f16(from + 2 * i));
  if (i == n) return;
  std::uint16_t last[kLanes] = {};
  std::memcpy(last, from + 2 * i, 2 * (n - i));
  store(to + i, load_f16(last));
}
ZRT_SIMD void widen_q8_0(const std::byte* from, float* to, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; i += 32, from += 34) {
    std::uint16_t d;
    std::memcpy(&d, from, 2);
    const Floats scale = splat(f16_to_float(d));
    store(to + i, scale * load_i8(from + 2));
    store(to + i + kLanes, scale * load_i8(from + 18));
  }
}
ZRT_SIMD const std::byte* page_at(const Cache& cache, std::uint32_t at) {
  return cache.memory + static_cast<std::uint64_t>(cache.pages[at / kPage]) * cache.pitch + cache.head;
}
// Prefetches a page. The processor does not prefetch the next page by itself, because pages of a slot are not
// contiguous.
ZRT_SIMD void prefetch(const Cache& cache, const std::byte* from, std::uint32_t n) {
  const std::uint64_t bytes = bytes_of(cache.kv, cache.dim);
  for (std::uint32_t j = 0; j < n; ++j, from += cache.cell)
    for (std::uint64_t i = 0; i < bytes; i += 64) __builtin_prefetch(from + i);
}
ZRT_SIMD void prefetch(const Cache& cache, std::uint32_t at, std::uint32_t n) {
  prefetch(cache, page_at(cache, at), n);
}
ZRT_SIMD bool has_halves(const Cache& cache) {
  return cache.kv == DType::kF16 && cache.dim % kLanes == 0;
}
ZRT_SIMD bool has_floats(const Cache& cache) {
  return cache.kv == DType::kF32 && cache.dim % kLanes == 0;
}
// Returns the page that contains position `at`, without copying it. Prefetches the memory at `ahead` if that is not
// null.
template <class T>
ZRT_SIMD Page<T> in_place(const Cache& cache, std::uint32_t at, const std::byte* ahead) {
  const std::byte* from = page_at(cache, at);
  return {reinterpret_cast<const T*>(from), cache.cell / sizeof(T), ahead == nullptr ? 0 : ahead - from};
}
// Prefetches into the L2 cache. The distance between tokens is usually a power of two, so the tokens' rows map to few
// sets of the L1 cache.
template <class T>
ZRT_SIMD void ask_for(const T* p, std::int64_t ahead) {
  __builtin_prefetch(reinterpret_cast<const std::byte*>(p) + ahead, 0, 2);
}
// Converts the first n tokens of the page that contains position `at` to floats.
__attribute__((noinline)) WidePage widen(const Cache& cache, std::uint32_t at, std::uint32_t n, float* scratch) {
  const std::byte* from = page_at(cache, at);
  const std::uint32_t width = padded(cache.dim), dim = cache.dim;
  const std::uint64_t cell = cache.cell;
  if (has_floats(cache)) return in_place<float>(cache, at, nullptr);
  float* to = scratch;
  if (cache.kv == DType::kF32)
    for (std::uint32_t j = 0; j < n; ++j, from += cell, to += width) widen_f32(from, to, dim);
  else if (cache.kv == DType::kF16)
    for (std::uint32_t j = 0; j < n; ++j, from += cell, to += width) widen_f16(from, to, dim);
  else
    for (std::uint32_t j = 0; j < n; ++j, from += cell, to += width) widen_q8_0(from, to, dim);
  return {scratch, width};
}

// Describes the K or the V of one head and slot in pages whose cells are interleaved by page.
struct PartCache {
  const std::byte* memory;
  const std::int32_t* pages;
  std::uint64_t pitch, codes, scales;  // bytes between pages, and from a page's start to the head's codes and scales
  std::uint32_t dim;
};
ZRT_SIMD PartCache part_cache_of(const cpu::AttendTile& tile, const void* memory, std::uint64_t pitch,
                                 std::uint64_t codes, std::uint64_t scales, std::uint32_t dim, std::int32_t slot) {
  return {static_cast<const std::byte*>(memory),
          tile.page_table + static_cast<std::int64_t>(slot) * tile.pages_per_slot,
          pitch,
          codes,
          scales,
          dim};
}
ZRT_SIMD const std::byte* page_at(const PartCache& cache, std::uint32_t at) {
  return cache.memory + static_cast<std::uint64_t>(cache.pages[at / kPage]) * cache.pitch;
}
}  // namespace
}  // namespace zinc_rt::cpu_simd
