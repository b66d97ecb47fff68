// Tells when the sum acc = fma(v, f, acc) over the groups of a row may use usual_fma (exact_math.glsl), which is faster
// but need not be right for denormals. v is the value of a group of 256 weights and codes of x; f is the scale of x in
// this group.
// If every v so far is 0 or at least 2^-30 in magnitude, and every f is 0 or at least 2^-45, then all products are
// multiples of 2^-121. So are their sums, and none can be a denormal. For formats whose scale is an f16, every v is 0
// or at least 2^-24.
bool is_usual_value(float v) { return v == 0.0 || abs(v) >= 9.313225746154785e-10; }
bool is_usual_factor(float f) { return f == 0.0 || f >= 2.8421709430404007e-14; }
