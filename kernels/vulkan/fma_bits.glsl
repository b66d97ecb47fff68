// fma_bits() returns the bits of fma(a, b, c), rounded to nearest, ties to even, with denormals. It uses only 32-bit
// integer operations, so its bits are the same on every device, however the device computes floats.
// The product of two floats has 48 bits. It is held in two words, x the high one, with free bits below. shift_right()
// shifts these to the right; if it loses bits that are 1, the last bit of the result becomes 1, so that rounding sees
// them.
uvec2 shift_right(uvec2 v, int n) {
  if (n <= 0) return v;
  if (n >= 64) return uvec2(0u, uint((v.x | v.y) != 0u));
  uint lost;
  if (n >= 32) {
    lost = v.y | (n == 32 ? 0u : v.x << (64 - n));
    v = uvec2(0u, n == 32 ? v.x : v.x >> (n - 32));
  } else {
    lost = v.y << (32 - n);
    v = uvec2(v.x >> n, (v.y >> n) | (v.x << (32 - n)));
  }
  v.y |= uint(lost != 0u);
  return v;
}

uint fma_bits(uint a, uint b, uint c) {
  uint sp = (a ^ b) & 0x80000000u, sc = c & 0x80000000u;
  int ea = int(a >> 23 & 0xFFu), eb = int(b >> 23 & 0xFFu), ec = int(c >> 23 & 0xFFu);
  uint ma = a & 0x7FFFFFu, mb = b & 0x7FFFFFu, mc = c & 0x7FFFFFu;
  bool a_is_0 = (a & 0x7FFFFFFFu) == 0u, b_is_0 = (b & 0x7FFFFFFFu) == 0u;
  if (max(max(ea, eb), ec) == 255) {
    bool nan = (ea == 255 && ma != 0u) || (eb == 255 && mb != 0u) || (ec == 255 && mc != 0u);
    bool infinite = ea == 255 || eb == 255;
    if (nan || (infinite && (a_is_0 || b_is_0)) || (infinite && ec == 255 && sp != sc)) return 0x7FC00000u;
    return infinite ? sp | 0x7F800000u : c;
  }
  if (a_is_0 || b_is_0) return (c & 0x7FFFFFFFu) == 0u ? sp & sc : c;
  if (ea == 0) { int s = 23 - findMSB(ma); ma <<= s; ea = 1 - s; } else ma |= 0x800000u;
  if (eb == 0) { int s = 23 - findMSB(mb); mb <<= s; eb = 1 - s; } else mb |= 0x800000u;
  if (ec == 0) { int s = mc == 0u ? 0 : 23 - findMSB(mc); mc <<= s; ec = 1 - s; } else mc |= 0x800000u;
  uint al = ma & 0xFFFu, ah = ma >> 12, bl = mb & 0xFFFu, bh = mb >> 12, mid = ah * bl + al * bh, hh = ah * bh;
  uint lo = al * bl, hi = mid >> 20, t = lo + (mid << 12);
  hi += uint(t < lo);
  lo = t + (hh << 24);
  hi += (hh >> 8) + uint(lo < t);
  // The leading bit of the product is now bit 60 or 61, and that of c is bit 60.
  uvec2 p = uvec2(hi << 14 | lo >> 18, lo << 14), q = uvec2(mc << 5, 0u);
  int ep = ea + eb - 127, e = mc == 0u ? ep : max(ep, ec);
  p = shift_right(p, e - ep);
  q = shift_right(q, mc == 0u ? 0 : e - ec);
  uint sign = sp;
  if (sp == sc) {
    uint low = p.y + q.y;
    p = uvec2(p.x + q.x + uint(low < p.y), low);
  } else {
    if (p.x < q.x || (p.x == q.x && p.y < q.y)) { uvec2 swap = p; p = q; q = swap; sign = sc; }
    p = uvec2(p.x - q.x - uint(p.y < q.y), p.y - q.y);
    if ((p.x | p.y) == 0u) return 0u;
  }
  int up = p.x != 0u ? 30 - findMSB(p.x) : 62 - findMSB(p.y);  // how far the leading bit is from bit 62
  int exponent = e - up + 2;
  p = up >= 32 ? uvec2(p.y << (up - 32), 0u) : up <= 0 ? p : uvec2(p.x << up | p.y >> (32 - up), p.y << up);
  if (exponent <= 0) { p = shift_right(p, 1 - exponent); exponent = 0; }
  uint m = p.x >> 7, rest = p.x & 0x7Fu;
  m += uint(rest > 0x40u || (rest == 0x40u && (p.y != 0u || (m & 1u) != 0u)));
  uint result = exponent == 0 ? m : (uint(exponent) << 23) + m - 0x800000u;
  return sign | min(result, 0x7F800000u);
}
