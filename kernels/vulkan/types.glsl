// The numbers of the types that kernels ask for (cpp/base/dtype.h).
const uint kF32 = 0, kF16 = 1, kBF16 = 2, kQ4_0 = 3, kQ4_1 = 4, kQ5_0 = 5, kQ5_1 = 6, kQ8_0 = 7, kQ2_K = 8, kQ3_K = 9,
           kQ4_K = 10, kQ5_K = 11, kQ6_K = 12, kIQ4_NL = 13, kIQ4_XS = 14, kMXFP4 = 15, kQ8A32 = 19, kQ8A256 = 20,
           kFixed16 = 24, kQ16A256 = 25;
// Bytes of a block of quantized activations.
const uint kQ8A32Bytes = 40, kQ8A256Bytes = 292, kQ16A256Bytes = 516;
