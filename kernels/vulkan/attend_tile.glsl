// The rows of a workgroup that makes attention of several tokens of a slot and heads of a kv head at once: TOKENS
// tokens at most, from the workgroup's own on up to the next position that TOKENS divides or the slot's end, and HEADS
// heads. A workgroup of a token in between has nothing to do. Row r is token r / HEADS, head r % HEADS.
// Included after PUSH(FlashAttn), HEADS and TOKENS. Grid: (kv heads times parts of their heads, tokens).
const uint kChunk = 128;
struct Tile {
  uint first, n_tokens, position, kv_head, head, n_heads;  // head: the first; position: the first token's
  uint64_t pages;
};
// False: another workgroup has the token.
bool find_tile(uint t, out Tile tile) {
  uint n_rows = gl_NumWorkGroups.y, position = Words(p.positions).v[t];
  int slot = Ints(p.slots).v[t];
  if (position % TOKENS != 0 && t > 0 && Ints(p.slots).v[t - 1] == slot) return false;
  uint n = 1;
  while (t + n < n_rows && (position + n) % TOKENS != 0 && Ints(p.slots).v[t + n] == slot) ++n;
  uint group = p.n_heads / p.n_kv_heads, n_parts = (group + HEADS - 1) / HEADS, part = gl_WorkGroupID.x % n_parts;
  tile.first = t;
  tile.n_tokens = n;
  tile.position = position;
  tile.kv_head = gl_WorkGroupID.x / n_parts;
  tile.head = tile.kv_head * group + part * HEADS;
  tile.n_heads = min(HEADS, group - part * HEADS);
  tile.pages = p.pages + uint64_t(slot) * p.width * 4u;
  return true;
}

uint first_seen(Tile tile, uint token) {
  uint position = tile.position + token;
  return p.window > 0u && position >= p.window ? position - p.window + 1 : 0;
}
uint last_seen(Tile tile) { return tile.position + tile.n_tokens - 1; }
bool is_there(Tile tile, uint r) { return r / HEADS < tile.n_tokens && r % HEADS < tile.n_heads; }
// Whether row r sees token j; whether it is there and sees one of the chunk at `at`.
bool sees(Tile tile, uint r, uint j) { return j <= tile.position + r / HEADS && j >= first_seen(tile, r / HEADS); }
bool sees_of(Tile tile, uint r, uint at) {
  return is_there(tile, r) && at <= tile.position + r / HEADS && at + kChunk > first_seen(tile, r / HEADS);
}
uint64_t page_of(Tile tile, uint j) { return p.cache + uint64_t(Words(tile.pages).v[j / 16]) * p.page_bytes; }
// The memory of row r of rows of n floats, as q and y lie.
Floats floats_of(Tile tile, uint64_t base, uint r, uint n) {
  return Floats(float_row(base, (tile.first + r / HEADS) * p.n_heads + tile.head + r % HEADS, n));
}
