// The numbers of the data types that these kernels distinguish (cpp/base/dtype.h).
const uint kF32 = 0, kF16 = 1, kBF16 = 2, kQ4_0 = 3, kQ4_1 = 4, kQ5_0 = 5, kQ5_1 = 6, kQ8_0 = 7, kQ2_K = 8, kQ3_K = 9,
           kQ4_K = 10, kQ5_K = 11, kQ6_K = 12, kIQ4_NL = 13, kIQ4_XS = 14, kMXFP4 = 15, kQ8A32 = 19, kQ8A256 = 20,
           kFixed16 = 24, kQ16A256 = 25;
// How rows of quantized activations lie in memory. Their numbers are those of kernels/common/act_q8.h, but a row is
// split into planes, one after another, so that codes can be read 16 bytes at a time:
// - the codes of the whole row; of q16a256 all high digits, then all low ones
// - only q8a256: for each block the low digits of its 16 sums of 16 codes, then their high digits, as bytes
// - for each block its head. q8a32: d and the sum of the codes; q8a256: d and the 16 sums as int16; q16a256: d
// The constants are the sizes of a head in bytes.
const uint kQ8A32Head = 8, kQ8A256Head = 36, kQ16A256Head = 4;
uint q8a256_heads(uint k) { return k / 8 * 9; }  // where the heads of q8a256 begin in a row of k values
