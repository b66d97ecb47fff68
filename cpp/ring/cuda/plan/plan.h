// Turns packets into launches: chooses an op's kernels on this tier, and their shapes. A plan is a value without driver
// objects or addresses; cuda_graph.cpp fills in the addresses. A plan is made for a bucket, that is, for up to so many
// rows. The numbers of a step are read on the device.
// Thread rule: plain values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/args.h"
#include "ring/cuda/plan/places.h"
#include "ring/cuda/plan/profile.h"
#include "ring/gpu/call.h"
#include "ring/gpu/op_table.h"
#include "ring/gpu/plan.h"
#include "ring/gpu/products.h"

namespace zinc_rt::ring {

using cuda::Place;
using gpu::ceil_div;
using gpu::type_of;
namespace op_symbol = gpu::op_symbol;

// What a Place in a kernel's arguments stands for, until cuda_graph.cpp replaces it by an address: nothing (null), a
// value of the batch, scratch memory, or the step's header.
enum class PlaceKind : std::uint64_t { kAbsent, kValue, kScratch, kHeader };
// Returns the Place that stands for (kind, number). number: a ValueId for kValue, a byte offset for kScratch, else 0.
constexpr Place place_of(PlaceKind kind, std::uint64_t number) {
  return {static_cast<std::uint64_t>(kind) << 60 | number};
}
// Return the kind and the number that place_of() was called with.
constexpr PlaceKind kind_of(Place place) {
  return static_cast<PlaceKind>(place.word >> 60);
}
constexpr std::uint64_t number_of(Place place) {
  return place.word & ((std::uint64_t{1} << 60) - 1);
}

// One launch of a kernel: function `function` of image `image`, its grid, and its arguments.
struct Launch {
  std::string image, function;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block = 1, shared = 0;  // threads; bytes of dynamic shared memory
  std::vector<std::byte> args;          // the kernel's arguments, by value; addresses are places
  std::vector<std::uint32_t> places;    // offsets of the places in args
  // Matrices that the kernel copies by tensor maps. The driver makes a map when the launch is built. Rows have k values
  // of two bytes, experts are expert_bytes apart, and a box is box_rows rows by kWgmmaValues values.
  struct Tensor {
    std::uint32_t at;  // offset of the tensor map in args
    Place w;
    std::uint32_t k, rows, box_rows, n_experts;
    std::uint64_t expert_bytes;
  };
  std::vector<Tensor> tensors;
};

// A packet that is being planned as launches. Its operands are values of the batch; its numbers of rows are those of
// the bucket.
struct OpCall : gpu::Call<Place> {
  // The number of rows (the first axis of the grid) if it is fixed, or the symbol of op_args.h that stands for it.
  std::uint32_t rows_symbol;
  bool has_places = false;  // kernels read copies of positions, slots and the page table, which step_begin makes
};

// Planner collects the launches of one part of a batch while its packets are planned, and hands out scratch memory.
class Planner {
 public:
  Planner(const DeviceProfile& device, std::vector<Launch>& launches) : device_(device), launches_(launches) {}

  const DeviceProfile& device() const { return device_; }
  static Place header() { return place_of(PlaceKind::kHeader, 0); }
  std::uint32_t most_shared() const { return device_.most_shared; }
  bool has_wgmma() const { return device_.has_wgmma; }
  bool is_fast() const { return device_.is_fast; }
  // Returns scratch memory for the packets that are being planned together.
  Place scratch(std::uint64_t bytes) { return place_of(PlaceKind::kScratch, scratch_.take(bytes)); }
  // Ends the plan of the packets so far. Frees their scratch memory, and the sorted choices unless a later packet reads
  // them (is_read(value)).
  template <class IsRead>
  void end_packets(const IsRead& is_read) {
    if (sorted_.ids && !is_read(sorted_.ids)) sorted_ = {}, kept_ = 0;
    scratch_.free_behind(kept_);
  }
  std::uint64_t scratch_bytes() const { return scratch_.most(); }

  // The key of an order of choices: those of `ids`, sorted by expert into items of up to `columns` choices. A launch
  // writes the sorted choices to scratch memory. All later packets that read `ids` use them, until choices are sorted
  // again.
  struct Sorted {
    Place ids = {};
    std::uint32_t rows_symbol = 0, choices = 0, n_experts = 0, columns = 0;
    bool operator==(const Sorted&) const = default;
  };
  // Where the sorted choices are: the items, and the choices in their order (LinearArgs::items and order).
  struct SortedAt {
    Place items, order;
  };
  // find() returns where the choices in this order are, or null if they are not sorted yet. make() reserves memory for
  // them; it outlives the packets that are being planned.
  const SortedAt* find(const Sorted& sorted) const;
  SortedAt make(const Sorted& sorted, std::uint32_t n_items, std::uint32_t n_choices);
  // Whether an earlier product has waited for these choices before it let the next launch start. Later launches may
  // then read the choices before they wait. items: absent, or the sorted choices.
  bool are_known(Place ids, Place items) const { return ids == known_ids_ && items == known_items_; }
  void set_known(Place ids, Place items) { known_ids_ = ids, known_items_ = items; }

  // Returns the arguments of an op's kernel, with the op's operands. The symbols are those named in `Symbols`
  // (cuda::symbol). args_of_op uses the number of rows and then the op's own symbols.
  template <class Symbols>
  cuda::OpArgs args(const OpCall& call, const typename Symbols::template Of<std::uint32_t>& symbols) const {
    cuda::OpArgs args = args_without_symbols(call);
    args.set_symbols<Symbols>(symbols);
    return args;
  }
  cuda::OpArgs args_of_op(const OpCall& call) const;
  template <class Args>
  void launch(std::string image, std::string function, std::uint32_t x, std::uint32_t y, std::uint32_t z,
              std::uint32_t block, std::uint64_t shared, const Args& args, std::vector<Launch::Tensor> tensors = {}) {
    Launch launch{std::move(image),  std::move(function), {x, y, z}, block, static_cast<std::uint32_t>(shared), {}, {},
                  std::move(tensors)};
    const auto* bytes = reinterpret_cast<const std::byte*>(&args);
    launch.args.assign(bytes, bytes + sizeof(args));
    each_place(args, [&](const Place& place) {
      if (place)
        launch.places.push_back(static_cast<std::uint32_t>(reinterpret_cast<const std::byte*>(&place) - bytes));
    });
    launches_.push_back(std::move(launch));
  }

 private:
  cuda::OpArgs args_without_symbols(const OpCall& call) const;

  const DeviceProfile& device_;
  gpu::Scratch scratch_;
  std::uint64_t kept_ = 0;  // bytes of scratch memory that outlive the packets being planned
  Sorted sorted_;
  SortedAt sorted_at_{};
  Place known_ids_, known_items_;
  std::vector<Launch>& launches_;
};

// Matrix products (plan_linear.cpp).
using Matrix = gpu::Matrix<Place>;
using Experts = gpu::Experts<Place>;
using Products = gpu::Products<Place>;
// The RMS_NORM of a single row of x, if the products after it compute it themselves. can_norm() says whether they can.
struct Norm {
  Place w;
  float eps;
};
bool can_norm(const OpCall& call, DType x_dtype, std::uint32_t k);
// DigitRows is the layout of x in tiles of rows (digit_rows.cu), which products by digits of sub-scales and by FIXED16
// read. columns is 0 if no product reads this layout.
struct DigitRows {
  std::uint32_t columns = 0;  // rows per tile
  Place tiles = {};
  bool is_all = false;  // all products read x in this layout only
};
constexpr std::uint64_t digit_rows_bytes(std::uint32_t k, std::uint32_t rows, std::uint32_t columns) {
  return std::uint64_t{k / 256} * ceil_div(rows, columns) * cuda::digits_x_bytes(columns);
}
constexpr std::uint64_t fixed_rows_bytes(std::uint32_t k, std::uint32_t rows, std::uint32_t columns) {
  return std::uint64_t{k / 256} * ceil_div(rows, columns) * cuda::fixed_x_bytes(columns);
}
// Whether some products with x of this type read it in tiles.
constexpr bool has_tiles(DType x) {
  return x == DType::kQ8A256 || x == DType::kQ16A256;
}
// Returns the layout in which products of `matrices` (all with rows of k values) read such rows of x, and reserves
// scratch memory for it.
DigitRows plan_digits(Planner& planner, const OpCall& call, std::uint32_t k, const std::vector<Matrix>& matrices);
// The GLU after gate and up products of one row, y = act(gate) * up, if the products compute it themselves. can_glu()
// says whether they can.
struct GluOf {
  Place y;
  std::uint32_t act;
};
bool can_glu(const Planner& planner, const OpCall& call, DType x_dtype, const std::vector<Matrix>& gate_up);
// Whether a product of one row of k values with dense matrices of a type may quantize the row itself
// (LinearWith::floats).
bool can_quantize_x(const Planner& planner, const OpCall& call, std::uint32_t k, DType dtype);
// LinearWith says what a product does besides multiplying matrices by x. Members that are absent or null are not done.
struct LinearWith {
  Place residual = {};  // absent, or rows to which y is also added
  // If not null, x is a row of floats, which the product normalizes and quantizes itself.
  const Norm* norm = nullptr;
  // The result of plan_digits if the launch before writes this layout; else a launch is planned here.
  DigitRows digits = {};
  // The GLU that the products compute as well; null: none.
  const GluOf* glu = nullptr;
  Place floats = {};  // absent, or one row (for experts one per choice) that the product quantizes itself into x
};
// Plans one launch per matrix type.
void plan_linear(Planner& planner, const OpCall& call, const Products& products, const LinearWith& with = {});
// The types and layouts in which a norm's rows are read later. The norm writes all that are present.
struct NormedRows {
  Place floats = {}, q8a32 = {}, q8a256 = {}, q16a256 = {};
  DigitRows digits = {}, fixed = {};  // for q8a256; for q16a256

  Place& of(DType dtype) {
    switch (dtype) {
      case DType::kF32: return floats;
      case DType::kQ8A32: return q8a32;
      case DType::kQ16A256: return q16a256;
      default: return q8a256;
    }
  }
  DigitRows& tiles_of(DType dtype) { return dtype == DType::kQ16A256 ? fixed : digits; }
};
// Plans y = x W^T for a float matrix and one row x, which the product normalizes first. It also writes the normalized
// row in the types that are present in `rows` (but no digits). x must share no memory with y or `rows`. REQUIRES:
// can_norm_floats().
bool can_norm_floats(const Planner& planner, std::uint32_t k, const Matrix& matrix);
void plan_normed_floats(Planner& planner, const OpCall& call, Place x, std::uint32_t k, const Matrix& matrix,
                        const Norm& norm, const NormedRows& rows);
// Sorting tells the launch that chooses experts to write the choices sorted by expert as well: where (at), and in items
// of how many choices (columns), as the later `products` read them. columns is 0 if these read the choices unsorted.
struct Sorting {
  std::uint32_t columns = 0;
  Planner::SortedAt at = {};
};
Sorting plan_sorting(Planner& planner, const OpCall& call, const Products& products);
// Plans the quantization of rows of k floats to an activation type. Returns the rows, in scratch memory.
Place plan_quantize(Planner& planner, const OpCall& call, Place x, DType to, std::uint32_t k);

// Plans attention (plan_attention.cpp). quantize: null, or the QUANTIZE of its rows to do as well (can_quantize).
// kv_write: null, or the packet before it that writes the cache, to do as well (can_write_cache). digits: the layout in
// which the quantized rows are also written.
void plan_attention(Planner& planner, const OpCall& call, const OpCall* quantize = nullptr,
                    const OpCall* kv_write = nullptr, const DigitRows& digits = {});
bool can_quantize(const Planner& planner, const OpCall& attention, const OpCall& next);
bool can_write_cache(const Planner& planner, const OpCall& attention, const OpCall& before);

// The table of ops (ops.cpp), and of packets that are planned as one (joins.cpp).
using CudaOp = gpu::Op<Planner, OpCall>;
std::span<const CudaOp> cuda_ops();
using CudaJoin = gpu::Join<Planner, OpCall>;
std::span<const CudaJoin> cuda_joins();

// PartPlan is the result of planning: the launches of a part of a batch, for one device and bucket.
struct PartPlan {
  std::vector<Launch> launches;
  std::uint64_t scratch_bytes = 0;  // exactly what the launches need
};
// Plans the packets of `batch` from number `first` on, whose calls are `calls`.
PartPlan plan_part(const PacketBatch& batch, std::uint32_t first, std::span<const OpCall> calls,
                   const DeviceProfile& device);

}  // namespace zinc_rt::ring
