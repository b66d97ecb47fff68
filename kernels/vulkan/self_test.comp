// Computes one function of the arithmetic contract (docs/arithmetic.md), p.function, for p.n inputs.
// cpp/vulkan/self_test.cpp compares the results with those of the C++ functions, bit for bit. Grid: (n / 64, 1). Each
// invocation computes one result.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "exact_math.glsl"
#include "formats.glsl"
layout(local_size_x = kWidth) in;
PUSH(SelfTest);

// Return the i-th value of the inputs a and b; indices past the end begin again at 0.
float a(uint i) { return Floats(p.a).v[i % p.n]; }
float b(uint i) { return Floats(p.b).v[i % p.n]; }

// Returns a float dot of 256 values (rule 4) from index i on.
float folded(uint i) {
  float lane[16];
  for (int l = 0; l < 16; ++l) lane[l] = 0.0;
  for (uint k = 0; k < 256; ++k) lane[k % 16] = ZRT_FMA(a(i + k), b(i + k), lane[k % 16]);
  return fold16(lane);
}

uint result(uint i) {
  switch (p.function) {
    case kTestFma: return floatBitsToUint(ZRT_FMA(a(i), b(i), a(i + 1)));
    case kTestSumOfProduct: return floatBitsToUint(a(i) * b(i) + a(i + 1));
    case kTestProduct: return floatBitsToUint(a(i) * b(i));
    case kTestSum: return floatBitsToUint(a(i) + b(i));
    case kTestRound: return floatBitsToUint(round_int(a(i)));
    case kTestExp: return floatBitsToUint(exact_exp(a(i)));
    case kTestSilu: return floatBitsToUint(silu(a(i)));
    case kTestGelu: return floatBitsToUint(gelu_tanh(a(i)));
    case kTestTanh: return floatBitsToUint(exact_tanh(a(i)));
    case kTestDiv: return floatBitsToUint(exact_div(a(i), b(i)));
    case kTestRsqrt: return floatBitsToUint(rsqrt(a(i)));
    case kTestFromInt: return floatBitsToUint(float(Ints(p.a).v[i]));
    case kTestToHalf: return f32_to_f16(a(i));
    case kTestFromHalf: return floatBitsToUint(f16_to_f32(Words(p.a).v[i] & 0xFFFFu));
    case kTestDotOfBytes: return uint(dot4(Words(p.a).v[i], Words(p.b).v[i]));
    case kTestSigmoid: return floatBitsToUint(sigmoid(a(i)));
    case kTestSoftplus: return floatBitsToUint(softplus(a(i)));
    case kTestFold: return floatBitsToUint(folded(i));
  }
  return 0u;
}

void main() {
  if (column() < p.n) Words(p.y).v[column()] = result(column());
}
