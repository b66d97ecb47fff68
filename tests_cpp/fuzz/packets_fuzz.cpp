// Any bytes as a log of packets: it is read, printed and replayed on a device that runs nothing, or an error says why not.
// And as a code object.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "ring/amd/code_object.h"
#include "ring/amd/packet_replay.h"

namespace {

using namespace zinc_rt::ring;  // NOLINT: what is tested

void expect(bool holds) {
  if (!holds) std::abort();
}

// Its fence goes up by one with each buffer, as the ring wants it.
class NoDevice final : public AmdDevice {
 public:
  zinc_rt::Result<Memory> alloc(std::uint64_t bytes, Domain) override {
    constexpr std::uint64_t kMost = 1 << 20, kPage = 4096;
    if (bytes > kMost) return std::unexpected(zinc_rt::Error{zinc_rt::StatusCode::kExhausted, "too much", 0});
    bytes = (bytes + kPage - 1) / kPage * kPage;
    auto* host = static_cast<std::byte*>(std::aligned_alloc(kPage, bytes));
    std::memset(host, 0, bytes);
    if (fence == nullptr) fence = reinterpret_cast<std::uint64_t*>(host);  // the first page is the fence's
    return Memory{host, reinterpret_cast<std::uint64_t>(host), bytes, 0};
  }
  void free(const Memory& memory) override { std::free(memory.host); }
  zinc_rt::Result<DeviceMemory> memory() const override { return DeviceMemory{}; }
  zinc_rt::Result<std::unique_ptr<PacketPath>> open_path() override { return std::make_unique<Path>(*this); }
  HostWrites host_writes() const override { return HostWrites::kDriver; }
  zinc_rt::Status check() override { return {}; }
  zinc_rt::kernel::Target target() const override { return zinc_rt::kernel::Target::kGfx1201; }
  std::string describe() const override { return "none"; }
  std::uint64_t* fence = nullptr;

 private:
  struct Path final : PacketPath {
    explicit Path(NoDevice& owner) : device(owner) {}
    bool has_space() const override { return true; }
    zinc_rt::Status submit(std::uint64_t, std::uint32_t) override {
      ++*device.fence;
      return {};
    }
    std::string state() const override { return {}; }
    NoDevice& device;
  };
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto object = read_code_object(bytes, "fuzz"); !object) expect(!object.error().message.empty());
  const auto records = read_packet_log(bytes);
  if (!records) {
    expect(!records.error().message.empty());
    return 0;
  }
  const auto texts = packet_log_text(*records);
  expect(texts || !texts.error().message.empty());
  auto proven = ProvenDevice::make(std::make_unique<NoDevice>(), std::chrono::seconds(1));
  expect(proven.has_value());
  const auto checks = replay_packets(bytes, *proven);
  expect(checks || !checks.error().message.empty());
  return 0;
}
