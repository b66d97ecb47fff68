// Chooses the kernels of attention by the bucket's tokens, the cache's type and the layout of its heads.
#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "base/kv_type.h"
#include "kernels/cuda/merge_few.h"
#include "kernels/cuda/rotated_args.h"
#include "ring/cuda/plan/plan.h"

namespace zinc_rt::ring {
namespace {

namespace symbol = cuda::symbol;
static_assert(std::string_view(operand::FlashAttn::kText) == operand::FlashAttnBatched::kText);

constexpr std::uint32_t kChunk = cuda::kAttendChunk;
// Upper bound, in bytes, of the static shared memory that a kernel uses besides the launch's.
constexpr std::uint32_t kOwnShared = 4096;

// The kernels. kMma and kTile: tiles of tokens with or without tensor cores. kIntegerTile, kRotatedTile: tiles of
// tokens over integer caches and over rotated codes. kIntegerRuns, kRotatedRuns: runs of a few tokens over them. The
// others: single tokens, with or without chunks in shared memory, and over integer caches and rotated codes.
enum class Kind : std::uint8_t {
  kMma,
  kTile,
  kIntegerTile,
  kRotatedTile,
  kStaged,
  kAny,
  kInteger,
  kRotated,
  kIntegerRuns,
  kRotatedRuns
};
bool is_tile(Kind kind) {
  return kind < Kind::kStaged;
}
bool is_of_runs(Kind kind) {
  return kind >= Kind::kIntegerRuns;
}
struct Plan {
  Kind kind = Kind::kAny;
  std::uint32_t tokens = 1;      // the most tokens of one slot that share a workgroup
  std::uint32_t width = 0;       // values per row in shared memory
  std::uint32_t parts = 1;       // workgroups per token and kv head; of is_of_runs, per kv head
  std::uint64_t shared = 0;      // bytes of shared memory
  std::uint32_t run_tokens = 0;  // the most tokens in a tile of flash_attn_runs.cu; 0: that kernel is not used
  std::uint64_t run_shared = 0;
  bool has_records() const { return parts > 1 || run_tokens > 0 || is_of_runs(kind); }
};

// Returns the type of the cache's keys.
DType keys_of(const OpCall& c) {
  return type_of(c.symbols<op_symbol::FlashAttn>().dtype_kv_k);
}

// The partial results for flash_attn_merge: the number of chunks per head that there is room for (as many as the
// longest history of the bucket can have), and the floats per chunk.
struct Records {
  std::uint32_t chunks, floats;
  std::uint64_t bytes;
};
Records records_of(const OpCall& c) {
  const auto push = c.constants<push::FlashAttn>();
  const std::uint64_t capacity = std::uint64_t{c.symbols<op_symbol::FlashAttn>().m} * 16,
                      positions = c.dims.n_positions == 0 ? capacity : c.dims.n_positions;
  const std::uint32_t chunks = ceil_div(std::min(capacity, positions), kChunk),
                      floats = (push.v_head_dim + 2 + 3) / 4 * 4;
  return {chunks, floats, std::uint64_t{c.rows()} * push.n_heads * chunks * floats * 4};
}

// The number of a slot's tokens that share a workgroup of flash_attn_tile.cu, a power of two. 0: even one does not fit.
std::uint32_t tile_tokens(std::uint32_t group, std::uint32_t width) {
  return std::bit_floor(cuda::attend_tile_rows(width) / group);
}

bool has_sinks(const OpCall& c) {
  return static_cast<bool>(c.buffers[operand::FlashAttn::sinks]);
}
// Heads with sinks have at least two parts, because then each chunk leaves a record, and the merge adds the sinks.
std::uint32_t least_parts(const OpCall& c) {
  return has_sinks(c) ? 2 : 1;
}

// Returns the number of workgroups per token and kv head, at most `chunks` or least_parts.
std::uint32_t parts_of(const Planner& p, const OpCall& c, std::uint32_t n_kv_heads, std::uint32_t chunks) {
  const std::uint32_t least = least_parts(c);
  return std::clamp(ceil_div(p.device().attention.workgroups_of_each * p.device().multiprocessors,
                             std::uint64_t{c.rows()} * n_kv_heads),
                    least, std::max(chunks, least));
}
// As parts_of, but for tiles that must all run at once. Fewer parts leave fewer chunks to merge, and no workgroup
// starts late.
std::uint32_t parts_at_once(const Planner& p, const OpCall& c, std::uint32_t n_kv_heads, std::uint32_t chunks) {
  const auto pairs = static_cast<std::uint32_t>(std::uint64_t{c.rows()} * n_kv_heads);
  const std::uint32_t least = least_parts(c);
  return std::clamp(p.device().attention.workgroups_of_each * p.device().multiprocessors / pairs, least,
                    std::max(chunks, least));
}
std::uint32_t width_of(std::uint32_t widest) {
  return widest <= 64 ? 64 : widest <= 128 ? 128 : 256;
}

// Returns the plan with tiles of tokens over an integer or rotated cache; nullopt if the step is short or its rows do
// not fit, so that each token needs its own workgroup. kind: the kernel for tiles. bytes(width): its shared memory.
// own: its static shared memory, in bytes.
template <class Bytes>
std::optional<Plan> tiles_of_codes(const Planner& p, const OpCall& c, Kind kind, const Bytes& bytes,
                                   std::uint32_t own) {
  const auto push = c.constants<push::FlashAttn>();
  const std::uint32_t widest = std::max(push.head_dim, push.v_head_dim), width = width_of(widest);
  Plan plan{.kind = kind,
            .tokens = std::bit_floor(cuda::kAttendIntegerRows / (push.n_heads / push.n_kv_heads)),
            .width = width,
            .shared = bytes(width)};
  const bool fits = widest <= cuda::kAttendIntegerMostWidth && plan.tokens > 0 && plan.shared + own <= p.most_shared();
  if (c.op == ir::Op::FLASH_ATTN_BATCHED && c.rows() >= p.device().attention.integer_tile_from_tokens && fits)
    return plan;
  return std::nullopt;
}
// Returns the plan with runs of tokens over an integer or rotated cache; nullopt if each slot has one token, if a
// workgroup's columns do not hold two tokens, or if tiles are better: the step is long, or its records would take much
// memory. There is at least one workgroup per token and kv head, because each token may be a run. bytes(columns): the
// kernel's shared memory.
template <class Bytes>
std::optional<Plan> runs_of_codes(const Planner& p, const OpCall& c, Kind kind, const Bytes& bytes) {
  const DeviceProfile::Attention& measured = p.device().attention;
  const auto push = c.constants<push::FlashAttn>();
  const std::uint32_t group = push.n_heads / push.n_kv_heads, tokens = std::bit_floor(cuda::kAttendRunColumns / group);
  if (c.op != ir::Op::FLASH_ATTN_BATCHED || c.rows() == 1 || c.rows() > cuda::kAttendIntegerRunStep || tokens < 2)
    return std::nullopt;
  const Records records = records_of(c);
  if (c.rows() > measured.integer_tile_from_tokens && records.bytes > measured.most_integer_run_bytes)
    return std::nullopt;
  const Plan plan{.kind = kind,
                  .tokens = tokens,
                  .parts = c.rows() * parts_of(p, c, push.n_kv_heads, records.chunks),
                  .shared = bytes(tokens * group)};
  if (plan.shared + cuda::kAttendRunShared > p.most_shared()) return std::nullopt;
  return plan;
}
Plan plan_of_integers(const Planner& p, const OpCall& c) {
  const auto push = c.constants<push::FlashAttn>();
  if (const auto runs = runs_of_codes(p, c, Kind::kIntegerRuns, [&](std::uint32_t columns) {
        return cuda::attend_integer_run_bytes(columns, push.head_dim);
      }))
    return *runs;
  if (const auto tiles =
          tiles_of_codes(p, c, Kind::kIntegerTile, cuda::attend_integer_tile_bytes, cuda::kAttendIntegerShared))
    return *tiles;
  Plan plan{.kind = Kind::kInteger,
            .width = width_of(std::max(push.head_dim, push.v_head_dim)),
            .parts = parts_of(p, c, push.n_kv_heads, records_of(c).chunks)};
  plan.shared =
      cuda::attend_integer_bytes(push.n_heads / push.n_kv_heads, push.head_dim, push.v_head_dim, plan.parts == 1);
  return plan;
}
Plan plan_of_rotated(const Planner& p, const OpCall& c) {
  const auto push = c.constants<push::FlashAttn>();
  if (const auto runs = runs_of_codes(p, c, Kind::kRotatedRuns, [&](std::uint32_t columns) {
        return cuda::attend_rotated_run_bytes(columns, push.head_dim, push.v_head_dim);
      }))
    return *runs;
  const bool is_r8 = keys_of(c) == DType::kR8;
  const auto bytes = [&](std::uint32_t width) { return cuda::attend_rotated_tile_bytes(is_r8, width); };
  if (const auto tiles = tiles_of_codes(p, c, Kind::kRotatedTile, bytes, cuda::kAttendRotatedShared)) return *tiles;
  Plan plan{.kind = Kind::kRotated, .parts = parts_at_once(p, c, push.n_kv_heads, records_of(c).chunks)};
  plan.shared =
      cuda::attend_rotated_token_bytes(push.n_heads / push.n_kv_heads, push.head_dim, push.v_head_dim, plan.parts == 1);
  return plan;
}

// Chooses the kernel. K and V are copied to shared memory chunk by chunk if a chunk fits and consists of whole vectors.
// Arithmetic `fast` has its own kernels only for tiles with f16 caches; elsewhere it uses the exact ones. With few
// tokens and heads, chunks are spread over more workgroups. FLASH_ATTN has one token per slot, so it has no runs.
Plan plan_of(const Planner& p, const OpCall& c) {
  const DeviceProfile::Attention& measured = p.device().attention;
  const auto push = c.constants<push::FlashAttn>();
  const DType type = keys_of(c);
  switch (find_kv_cell(type)->layout) {
    case KvLayout::kIntegers: return plan_of_integers(p, c);
    case KvLayout::kRotated: return plan_of_rotated(p, c);
    case KvLayout::kTokens: break;
  }
  const std::uint32_t group = push.n_heads / push.n_kv_heads, element = type == DType::kF32 ? 4 : 2,
                      padded = (push.head_dim + 15) / 16 * 16, widest = std::max(push.head_dim, push.v_head_dim);
  const std::uint32_t width = width_of(widest);
  const auto fits = [&](std::uint64_t shared) { return shared + kOwnShared <= p.most_shared(); };
  // Whether a head is a whole number of vectors and there are kernels for its width.
  const bool has_vectors =
      type != DType::kQ8_0 && push.head_dim % 8 == 0 && push.v_head_dim % 8 == 0 && widest * element <= 512;
  const bool is_long = c.rows() >= measured.tile_from_tokens;
  if (const std::uint32_t tokens = cuda::attend_mma_rows(width) / group, shared = cuda::attend_mma_bytes(width);
      p.is_fast() && type == DType::kF16 && has_vectors && is_long && tokens > 0 && fits(shared) && !has_sinks(c))
    return {Kind::kMma, tokens, width, 1, shared};
  const Records records = records_of(c);
  Plan plan;
  plan.parts = parts_of(p, c, push.n_kv_heads, records.chunks);
  const std::uint64_t merged = plan.parts == 1 ? std::uint64_t{group} * (push.v_head_dim + 2) * 4 : 0;
  const std::uint64_t staged = cuda::attend_chunk_bytes(width, element) + merged;
  const bool is_staged = has_vectors && fits(staged);
  const std::uint32_t tokens = tile_tokens(group, width), tile = cuda::attend_tile_bytes(width, element);
  const bool has_tiles = has_vectors && tokens > 0 && fits(tile);
  if (is_staged && has_tiles && c.op == ir::Op::FLASH_ATTN_BATCHED && tokens > 1 && c.rows() > 1 &&
      c.rows() <= cuda::kAttendRunStep && records.chunks >= cuda::kAttendRunChunks &&
      (plan.parts > 1 || records.bytes <= measured.most_run_bytes))
    plan.run_tokens = tokens, plan.run_shared = tile;
  else if (has_tiles && is_long)
    return {Kind::kTile, tokens, width, 1, tile};
  if (is_staged) {
    plan.kind = Kind::kStaged;
    plan.width = width;
    plan.shared = staged;
  } else {
    plan.shared = std::uint64_t{group} * padded * 4 + merged;
  }
  return plan;
}

// A tile kernel: its file, its names, and its workgroups per multiprocessor.
struct TileKernel {
  const char* file;
  std::string name;
  std::uint32_t workgroups;
};
TileKernel tile_kernel(Kind kind, const std::string& type, std::uint32_t width) {
  const std::string columns = std::to_string(width), name = "flash_attn_tile_" + type + "_" + columns;
  switch (kind) {
    case Kind::kMma: return {"flash_attn_mma", "flash_attn_mma_" + columns, cuda::attend_mma_workgroups(width)};
    case Kind::kIntegerTile: return {"flash_attn_integer_tile", name, cuda::attend_integer_tile_workgroups(width)};
    case Kind::kRotatedTile: return {"flash_attn_rotated_tile", name, cuda::attend_integer_tile_workgroups(width)};
    default: return {"flash_attn_tile", name, 2};
  }
}

// The merge of up to `chunks` chunks of a head. It uses shared memory only for many chunks, because a workgroup's
// shared memory keeps workgroups of the next launch out.
struct MergeKernel {
  std::string name;
  std::uint64_t shared;
};
MergeKernel merge_kernel(const Planner& p, const OpCall& c, Kind kind, std::uint32_t chunks, const OpCall* quantize) {
  const bool is_rotated = kind == Kind::kRotated || kind == Kind::kRotatedRuns;
  const std::string name = is_rotated ? "flash_attn_merge_rotated" : "flash_attn_merge";
  if (has_sinks(c)) return {name + "_sinks", cuda::merge_bytes(chunks, cuda::kMergeSmallDepth)};
  if (chunks <= cuda::kMergeFew) {
    const bool is_fixed = !is_rotated && quantize != nullptr && gpu::quantized(*quantize).type == DType::kQ16A256;
    return {name + (is_fixed ? "_few_fixed" : "_few"), 0};
  }
  if (const std::uint64_t deep = cuda::merge_bytes(chunks, cuda::kMergeDepth); deep + kOwnShared <= p.most_shared())
    return {name, deep};
  return {name + "_small", cuda::merge_bytes(chunks, cuda::kMergeSmallDepth)};
}

// Returns the arguments of attention whose workgroups also do the packet `write` (can_write_cache). Each workgroup
// computes its heads of q into shared memory, after the place of its chunk.
cuda::TokenArgs token_args(const cuda::OpArgs& attention, const OpCall& write) {
  const auto push = write.constants<push::RmsNormFusedRopeKvWrite>();
  const auto o = write.operands<operand::RmsNormFusedRopeKvWrite>();
  return {attention,
          {.q = o.q,
           .k = o.k,
           .v = o.v,
           .q_norm = o.q_norm,
           .k_norm = o.k_norm,
           .table = o.table,
           .table_rows = write.symbols<op_symbol::RopeKvWrite>().p,
           .n_rot = push.n_rot,
           .neox = push.neox,
           .eps = push.eps}};
}
std::uint64_t own_q_bytes(const push::FlashAttn& push) {
  return std::uint64_t{push.n_heads / push.n_kv_heads} * push.head_dim * 4;
}

}  // namespace

void plan_attention(Planner& p, const OpCall& c, const OpCall* quantize, const OpCall* kv_write,
                    const DigitRows& digits) {
  const auto push = c.constants<push::FlashAttn>();
  const Plan plan = plan_of(p, c);
  const std::string type(to_string(keys_of(c)));
  auto args = p.args_of_op(c);
  const std::string type_and_width = type + "_" + std::to_string(plan.width);
  if (is_tile(plan.kind)) {
    const TileKernel kernel = tile_kernel(plan.kind, type, plan.width);
    args.symbols[symbol::AttentionTiles::tile_tokens] = plan.tokens;
    args.symbols[symbol::AttentionTiles::tiles_at_once] =
        kernel.workgroups * p.device().multiprocessors / push.n_kv_heads;
    // The tiles of a prompt plus a few. If slots make more tiles, workgroups take several.
    p.launch(kernel.file, kernel.name, push.n_kv_heads, ceil_div(c.rows(), plan.tokens) + 8, 1,
             plan.kind == Kind::kMma ? cuda::kAttendMmaThreads : cuda::kAttendTileThreads, plan.shared, args);
    return;
  }
  const Records records = records_of(c);
  using Symbol = symbol::Attention;
  args.symbols[Symbol::chunks] = records.chunks;
  args.symbols[Symbol::floats] = records.floats;
  if (plan.has_records()) args.scratch = p.scratch(records.bytes);
  if (quantize != nullptr) {
    const auto quantized = gpu::quantized(*quantize);
    args.buffers[cuda::binding::Attention::quantized] = quantized.y;
    args.symbols[Symbol::quantized_dtype] = static_cast<std::uint32_t>(quantized.type);
    args.buffers[cuda::binding::Attention::digits] = digits.tiles;
    args.symbols[Symbol::digit_columns] = digits.columns;
  }
  args.symbols[Symbol::parts_at_once] = std::min(plan.parts, p.device().multiprocessors / (c.rows() * push.n_kv_heads));
  args.symbols[Symbol::group] = push.n_heads / push.n_kv_heads;
  args.symbols[Symbol::run_tokens] = plan.run_tokens;
  if (is_of_runs(plan.kind)) {
    args.symbols[symbol::AttentionRuns::run_tokens] = plan.tokens;
    args.symbols[symbol::AttentionRuns::least_workgroups] =
        p.device().attention.least_of_each * p.device().multiprocessors;
  }
  args.symbols[Symbol::is_runs_only] = plan.run_tokens > 0 && plan.parts == 1 ? 1 : 0;
  const auto are_all = [&](std::uint32_t values) { return push.head_dim == values && push.v_head_dim == values; };
  const std::string of_heads = are_all(128) ? "_128"
                               : are_all(64) && (plan.kind == Kind::kInteger || plan.kind == Kind::kIntegerRuns) ? "_64"
                                                                                                                 : "",
                    of_group = push.n_heads <= 4 * push.n_kv_heads ? "4" : "8";
  if (plan.kind == Kind::kInteger && kv_write != nullptr)
    p.launch("flash_attn_integer", "flash_attn_1_i16_4" + of_heads, c.rows(), push.n_kv_heads, plan.parts,
             cuda::kAttendIntegerThreads, plan.shared, token_args(args, *kv_write));
  else if (kv_write != nullptr)
    p.launch("flash_attn_staged", "flash_attn_1_" + type_and_width, c.rows(), push.n_kv_heads, plan.parts,
             cuda::kAttendThreads, plan.shared + own_q_bytes(push), token_args(args, *kv_write));
  else if (plan.kind == Kind::kInteger)
    p.launch("flash_attn_integer", "flash_attn_i16_" + of_group + of_heads, c.rows(), push.n_kv_heads, plan.parts,
             cuda::kAttendIntegerThreads, plan.shared, args);
  else if (is_of_runs(plan.kind))
    p.launch(plan.kind == Kind::kIntegerRuns ? "flash_attn_integer_runs" : "flash_attn_rotated_runs",
             "flash_attn_runs_" + type + of_heads, plan.parts, push.n_kv_heads, 1, cuda::kAttendIntegerThreads,
             plan.shared, args);
  else if (plan.kind == Kind::kRotated)
    p.launch("flash_attn_rotated", "flash_attn_" + type + of_heads, c.rows(), push.n_kv_heads, plan.parts,
             cuda::kAttendRotatedThreads, plan.shared, args);
  else if (plan.kind == Kind::kStaged)
    p.launch("flash_attn_staged", "flash_attn_" + type_and_width, c.rows(), push.n_kv_heads, plan.parts,
             cuda::kAttendThreads, plan.shared, args);
  else
    p.launch("flash_attn", "flash_attn_" + type, c.rows(), push.n_kv_heads, plan.parts, kChunk, plan.shared, args);
  // Twice as many workgroups as the GPU can run at once. Those that start beside workgroups of single tokens begin late
  // and take fewer tiles.
  if (plan.run_tokens > 0)
    p.launch("flash_attn_runs", "flash_attn_runs_" + type_and_width,
             2 * cuda::attend_tile_workgroups(plan.run_shared) * p.device().multiprocessors, 1, 1,
             cuda::kAttendTileThreads, plan.run_shared, args);
  if (!plan.has_records()) return;
  const MergeKernel merge = merge_kernel(p, c, plan.kind, records.chunks, quantize);
  p.launch("flash_attn", merge.name, c.rows(), ceil_div(push.n_heads * ceil_div(push.v_head_dim, 32), 8), 1,
           cuda::kMergeThreads, merge.shared, args);
}

// Whether the last kernel of a token may also quantize its row: the row must be a whole number of quantization blocks.
bool can_quantize(const Planner& p, const OpCall& c, const OpCall& next) {
  const auto push = c.constants<push::FlashAttn>();
  const Plan plan = plan_of(p, c);
  if (is_tile(plan.kind) || (plan.kind == Kind::kAny && plan.parts == 1)) return false;
  if (plan.has_records() && push.v_head_dim % 32 != 0) return false;
  if (plan.parts > 1) return true;
  const DType type = gpu::quantized(next).type;
  const std::uint32_t values = push.n_heads / push.n_kv_heads * push.v_head_dim;
  return values % traits(type).block_elems == 0;
}

// If each token is the only one of its slot, the workgroups for staged chunks and for integers compute their heads of q
// themselves, and the one with the last chunk also makes the cells of K and V. The previous packet must be the whole
// write of the cache. There is no such kernel for heads wider than 128 values or for rotated caches. Over integers, a
// workgroup's four warps compute the heads one after another, so with more than four heads of q a separate launch is
// faster.
bool can_write_cache(const Planner& p, const OpCall& c, const OpCall& before) {
  if (c.op != ir::Op::FLASH_ATTN && c.rows_symbol != 1) return false;
  const auto push = c.constants<push::FlashAttn>();
  const std::uint32_t nq = push.n_heads * push.head_dim, nk = push.n_kv_heads * push.head_dim,
                      nv = push.n_kv_heads * push.v_head_dim;
  const auto written = before.symbols<op_symbol::RopeKvWrite>();
  if (before.constants<push::RmsNormFusedRopeKvWrite>().head_dim != push.head_dim || nq != written.nq ||
      nk != written.nk || nv != written.nv)
    return false;
  const Plan plan = plan_of(p, c);
  if (plan.width > 128 || plan.parts == 1) return false;
  return (plan.kind == Kind::kInteger && push.n_heads <= 4 * push.n_kv_heads) ||
         (plan.kind == Kind::kStaged && plan.shared + own_q_bytes(push) + kOwnShared <= p.most_shared());
}

}  // namespace zinc_rt::ring
