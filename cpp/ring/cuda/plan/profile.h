// The properties of a device by which the planner chooses kernels. Thresholds and times were measured on an H200; the
// H100 is the same chip with slower memory. Other GPUs use the same thresholds with their own numbers of
// multiprocessors and shared memory. No bit depends on any of them.
// Thread rule: constants.
#pragma once

#include <cstdint>

namespace zinc_rt::ring {

struct DeviceProfile {
  std::uint32_t multiprocessors = 132;
  std::uint32_t most_shared = 0;  // the most bytes of shared memory that a workgroup may have
  bool has_wgmma = false;         // the device runs the images' machine code for sm_90a
  bool is_fast = false;           // the kernels of arithmetic `fast` may be used; they are part of the code for sm_90a

  // Products of quantized weights. "Rows" are rows of x.
  struct Products {
    // Up to this many tokens, each choice reads its expert's weights by itself.
    std::uint32_t most_from_choice = 2;
    std::uint32_t most_few = 32;           // up to this many rows, linear.cuh is faster than tiles
    std::uint32_t least_pairs = 250;       // with fewer blocks of two tiles, much of a GPU would be idle
    std::uint32_t least_tiles = 100;       // the same for large tiles
    std::uint32_t least_small_tiles = 33;  // with fewer small tiles, linear_16 keeps more of the GPU busy
    // From this many large tiles on, a workgroup of 8 warps is faster than one of 16.
    std::uint32_t many_tiles = 500;
    // The longest row, in values, that a product quantizes itself without losing time.
    std::uint32_t most_quantized_inside = 6144;
    // The same for FIXED16, where a workgroup quantizes the row once.
    std::uint32_t most_quantized_inside_fixed = 8192;
    // Digits of sub-scales: the number of rows (for experts, the average per expert) from which these products are
    // faster. They are also faster with fewer rows if this many workgroups have a block of rows of W.
    std::uint32_t least_digits = 17, least_digits_of_experts = 13;
    std::uint32_t least_digits_of_many = 2, many_digit_blocks = 64, many_digit_blocks_of_q6_k = 80;
    // FIXED16 in tiles of 128 rows of W: the rows of x from which they are faster if there are least_tiles, and the
    // number of tiles from which they beat small tiles for more rows than digits take.
    std::uint32_t least_fixed = 17, least_fixed_tiles = 24;
    // Arithmetic `fast`: the rows from which it is faster than `exact`, for float weights, experts and quantized
    // weights.
    std::uint32_t least_wgmma_of_floats = 17, least_wgmma_of_experts = 33, least_wgmma = 65;
    std::uint32_t most_least_floats = 2;  // up to this many rows, linear_4 is the fastest, unless W has few rows
  } products;
  struct Attention {
    std::uint32_t tile_from_tokens = 256;  // tokens in a step
    std::uint32_t integer_tile_from_tokens = 64;
    // Steps of up to this many tokens are planned by the class of their longest history: 1,024, 4,096, 16,384 or 65,536
    // positions, or all that the cache has room for.
    std::uint32_t most_tokens_by_positions = 128, least_positions = 1024, most_positions = 65536;
    // Workgroups per multiprocessor, over which the chunks of few tokens are spread.
    std::uint32_t workgroups_of_each = 4;
    // For records of runs over integers in steps that tiles could compute: 128 tokens of 32 heads of 128 values in 16,384
    // positions.
    std::uint64_t most_integer_run_bytes = 5ull << 26;
    // Runs of tokens over integers are made shorter until this many workgroups per multiprocessor have work.
    std::uint32_t least_of_each = 1;
    std::uint64_t most_run_bytes = 5ull << 28;  // for records that only runs need: 256 tokens of 32 heads of
                                                // 128 values in 36k positions
  } attention;
  struct Experts {
    // Up to this many tokens, one workgroup that also sorts is faster than one per token and a separate sort.
    std::uint32_t most_sorted_at_once = 32;
  } experts;
};

}  // namespace zinc_rt::ring
