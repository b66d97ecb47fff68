// acc = fma(v, f, acc) over a row's groups, v of a group's integers and the scale of the weights, f the factor of x.
// Where all v so far are 0 or at least 2^-30 and all f 0 or at least 2^-45, products are multiples of 2^-121, and so
// are their sums: no denormal can come up, and usual_fma does it. Of formats whose scale is an f16, v is always so:
// a multiple of 2^-24.
bool is_usual_value(float v) { return v == 0.0 || abs(v) >= 9.313225746154785e-10; }
bool is_usual_factor(float f) { return f == 0.0 || f >= 2.8421709430404007e-14; }
