// The null tier computes nothing: packets retire when they are submitted, and every result stays zero. It serves to
// measure the cost of everything except the kernels, and is used only if the user names it.
#include "base/error.h"
#include "ring/host_memory.h"
#include "ring/tier.h"

namespace zinc_rt::ring {
namespace {

class NullRing final : public Ring {
 public:
  NullRing() : table_(kernel::Target::kCpu) {
    for (std::size_t op = 0; op < ir::kOpCount; ++op)
      for (int key = 0; key < static_cast<int>(DType::kCount); ++key) {
        kernel::KernelEntry entry;
        entry.file.name = to_string(static_cast<ir::Op>(op));
        entry.file.push_const_bytes = static_cast<std::uint32_t>(4 * ir::rule(static_cast<ir::Op>(op)).attrs.size());
        table_.add(static_cast<ir::Op>(op), static_cast<DType>(key), std::move(entry));
      }
  }
  Result<Fence> submit(const Submission& submission) override {
    ZRT_CHECK_OK(check_ranges(submission));
    const auto& batch = *submission.batch;
    for (std::uint32_t i = 0; i < submission.count; ++i) {
      const Packet& packet = batch.packets[submission.first + i];
      if (packet.kernel.id == 0 || packet.kernel.id > n_kernels_)
        return fail(StatusCode::kInvalidArgument, "[null] kernel {} is not loaded, {} are", packet.kernel.id,
                    n_kernels_);
      for (const Binding& binding : std::span(batch.bindings).subspan(packet.first_binding, packet.n_bindings))
        if (!memory_.holds(binding)) return memory_.refuse(binding);
      ++stats_.dispatches;
    }
    return Fence{++stats_.submissions};
  }
  Status wait(Fence fence) override { return check_fence("null", fence, stats_.submissions); }
  Result<std::span<std::byte>> map(const Buffer& buffer) override { return memory_.map(buffer); }
  Result<Buffer> alloc_bo(std::uint64_t bytes, Heap heap) override { return memory_.alloc(bytes, heap); }
  void free_bo(const Buffer& buffer) override { memory_.free(buffer); }
  Result<Buffer> import_host(std::span<const std::byte> memory) override { return memory_.import_host(memory); }
  Result<Kernel> load_kernel(std::span<const std::byte> zrt) override {
    ZRT_TRY(const auto file, kernel::read_zrt(zrt));
    if (file.target != kernel::Target::kCpu)
      return fail(StatusCode::kUnavailable, "[null] kernel {} is for {}, cpu wanted", file.name,
                  to_string(file.target));
    if (const auto symbol = file.unpatched(); !symbol.empty())
      return fail(StatusCode::kInvalidArgument, "[null] kernel {}: symbol {} is not patched", file.name, symbol);
    return Kernel{++n_kernels_};
  }
  const kernel::KernelTable& kernels() const override { return table_; }
  RingStats stats() const override {
    auto stats = stats_;
    stats.allocated_bytes = memory_.allocated_bytes();
    stats.imported_bytes = memory_.imported_bytes();
    return stats;
  }
  std::string describe() const override { return "computes nothing; results are zero"; }

 private:
  kernel::KernelTable table_;
  HostMemory memory_;
  RingStats stats_;
  std::uint32_t n_kernels_ = 0;
};

}  // namespace

extern const Tier kTier_null;
const Tier kTier_null{
    .name = "null",
    .description = "computes nothing, for measuring the rest",
    .priority = -1,
    .unavailable_reason = [] { return std::string(); },
    .make_ring = [](const RingOptions&) -> Result<std::unique_ptr<Ring>> { return std::make_unique<NullRing>(); },
    .n_devices = [] { return kHostDevices; }};

}  // namespace zinc_rt::ring
