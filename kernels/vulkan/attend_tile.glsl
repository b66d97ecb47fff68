// Finds the tile of a workgroup whose attention covers several tokens and heads at once. Its tokens are at most TOKENS
// neighbours of one slot in the step, of positions between two multiples of TOKENS. Its heads are at most HEADS heads
// that share a kv head. A row of the tile is one token and head: row r is token r / HEADS and head r % HEADS.
// Grid: (kv heads times groups of HEADS heads, tokens). There is a workgroup for each token; the one of a tile's first
// token computes the tile, and the others have nothing to do.
// Included after PUSH(FlashAttn), HEADS and TOKENS.
const uint kChunk = 128;
struct Tile {
  // first: the first token, as a row of the step; position: its position; head: the first head.
  uint first, n_tokens, position, kv_head, head, n_heads;
  uint64_t pages;
};
// Finds the tile that begins with token t. Returns false if t belongs to the tile of another workgroup.
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

// Return the first token that a row of `token` sees, and the last one that any row sees. is_there() tells whether the
// tile has row r.
uint first_seen(Tile tile, uint token) {
  uint position = tile.position + token;
  return p.window > 0u && position >= p.window ? position - p.window + 1 : 0;
}
uint last_seen(Tile tile) { return tile.position + tile.n_tokens - 1; }
bool is_there(Tile tile, uint r) { return r / HEADS < tile.n_tokens && r % HEADS < tile.n_heads; }
// sees() tells whether row r sees token j; sees_of() whether the tile has row r and the row sees a token of the chunk
// at `at`.
bool sees(Tile tile, uint r, uint j) { return j <= tile.position + r / HEADS && j >= first_seen(tile, r / HEADS); }
bool sees_of(Tile tile, uint r, uint at) {
  return is_there(tile, r) && at <= tile.position + r / HEADS && at + kChunk > first_seen(tile, r / HEADS);
}
uint64_t page_of(Tile tile, uint j) { return p.cache + uint64_t(Words(tile.pages).v[j / 16]) * p.page_bytes; }
// Returns row r of the tile in memory that has n floats for each token and head, such as q and y.
Floats floats_of(Tile tile, uint64_t base, uint r, uint n) {
  return Floats(float_row(base, (tile.first + r / HEADS) * p.n_heads + tile.head + r % HEADS, n));
}
