// DeviceProfile holds the properties of a GPU, and the measured thresholds, by which the planner chooses kernels. The
// thresholds were measured on an H200. (The H100 is the same chip with slower memory.) Other GPUs use the same
// thresholds, with their own number of multiprocessors and their own size of shared memory. With arithmetic `exact`,
// all kernels compute the same bits, so the choice changes only times. With `fast` it also changes results, because
// some of the kernels round differently.
// Thread rule: constants.
#pragma once

#include <cstdint>

namespace zinc_rt::ring {

struct DeviceProfile {
  std::uint32_t multiprocessors = 132;
  std::uint32_t most_shared = 0;  // the most bytes of shared memory that a workgroup may have
  bool has_wgmma = false;         // the device runs the images' machine code for sm_90a
  bool is_fast = false;           // the kernels of arithmetic `fast` may be used; they are part of the code for sm_90a

  // Products of quantized and float weights with x. "Rows" are rows of x, if not said otherwise.
  struct Products {
    // In steps of up to this many tokens, each choice of an expert by a token is a product of its own. In larger steps,
    // the choices of an expert are multiplied together.
    std::uint32_t most_from_choice = 2;
    std::uint32_t most_few = 32;           // up to this many rows, linear.cuh is faster than tiles
    std::uint32_t least_pairs = 250;       // with fewer blocks of two tiles of W, much of the GPU would be idle
    std::uint32_t least_tiles = 100;       // the same for blocks of large tiles
    std::uint32_t least_small_tiles = 33;  // with fewer small tiles, linear_16 keeps more of the GPU busy
    // From this many large tiles on, a workgroup of 8 warps is faster than one of 16.
    std::uint32_t many_tiles = 500;
    // The longest row of x, in values, that a product can quantize itself without losing time. Longer rows are
    // quantized by a launch of their own.
    std::uint32_t most_quantized_inside = 6144;
    // The same for FIXED16, where a workgroup quantizes the row once.
    std::uint32_t most_quantized_inside_fixed = 8192;
    // Products by digits of sub-scales (linear_digits.cuh): the number of rows (for experts, the average number per
    // expert) from which they are faster than others. With fewer rows, but at least least_digits_of_many, they are
    // faster if W has at least many_digit_blocks blocks.
    std::uint32_t least_digits = 17, least_digits_of_experts = 13;
    std::uint32_t least_digits_of_many = 2, many_digit_blocks = 64, many_digit_blocks_of_q6_k = 80;
    // Tiles of 128 rows of W for FIXED16 (linear_fixed.cuh) are used from least_fixed rows of x on. Up to
    // kMostDigitsColumns rows there must be at least least_tiles of them, because linear_digits.cuh is the alternative.
    // With more rows there must be at least least_fixed_tiles, because small tiles are the alternative.
    std::uint32_t least_fixed = 17, least_fixed_tiles = 24;
    // Arithmetic `fast`: the number of rows from which its products are used instead of exact ones, for float weights,
    // for experts (the average number per expert), and for quantized weights.
    std::uint32_t least_wgmma_of_floats = 17, least_wgmma_of_experts = 33, least_wgmma = 65;
    std::uint32_t most_least_floats = 2;  // up to this many rows, linear_4 is used without comparing times
  } products;
  struct Attention {
    std::uint32_t tile_from_tokens = 256;         // from this many tokens in a step on, tiles are faster
    std::uint32_t integer_tile_from_tokens = 64;  // the same for integer and rotated caches
    // Steps of up to this many tokens are planned by the class of their longest history: 1,024, 4,096, 16,384 or 65,536
    // positions, or all that the cache has room for.
    std::uint32_t most_tokens_by_positions = 128, least_positions = 1024, most_positions = 65536;
    // If a step has few tokens, the chunks of its histories are spread over this many workgroups per multiprocessor.
    std::uint32_t workgroups_of_each = 4;
    // The most bytes of records for which runs over integer and rotated caches are used in a step that tiles could
    // compute. It is enough for 128 tokens of 32 heads of 128 values in 16,384 positions.
    std::uint64_t most_integer_run_bytes = 5ull << 26;
    // Runs of tokens over integer and rotated caches are made shorter until this many workgroups per multiprocessor
    // have work.
    std::uint32_t least_of_each = 1;
    // The most bytes of records that only runs need. It is enough for 256 tokens of 32 heads of 128 values in 36k
    // positions.
    std::uint64_t most_run_bytes = 5ull << 28;
  } attention;
  struct Experts {
    // Up to this many tokens, one workgroup that also sorts is faster than one per token and a separate sort.
    std::uint32_t most_sorted_at_once = 32;
  } experts;
};

}  // namespace zinc_rt::ring
