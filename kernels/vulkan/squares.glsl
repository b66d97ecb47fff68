// Returns the sum of the squares of 16 values, added in order to 0. If all values are 0 or at least 2^-50 in magnitude,
// usual_fma (exact_math.glsl) is right: squares never cancel, so no sum is a denormal.
float sum_of_squares(float v[16]) {
  bool is_usual = true;
  for (uint i = 0; i < 16; ++i) is_usual = is_usual && (v[i] == 0.0 || abs(v[i]) >= 8.881784197001252e-16);
  float sum = 0.0;
  if (is_usual) {
    for (uint i = 0; i < 16; ++i) sum = usual_fma(v[i], v[i], sum);
    return sum;
  }
  for (uint i = 0; i < 16; ++i) sum = ZRT_FMA(v[i], v[i], sum);
  return sum;
}
