#include "ring/amd/packet_log.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "ring/amd/packet_text.h"

namespace zinc_rt::ring {
namespace {

constexpr char kMagic[8] = {'Z', 'R', 'T', 'P', 'K', 'T', '1', '\0'};
struct Head {
  std::uint32_t kind, domain;
  std::uint64_t va, value, bytes;
};
static_assert(sizeof(Head) == 32);

}  // namespace

// Returns the FNV-1a hash over 64-bit words. REQUIRES: the number of bytes is a multiple of 8.
std::uint64_t hash_of(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kBasis = 0xCBF29CE484222325, kPrime = 0x100000001B3;
  std::uint64_t hash = kBasis;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    hash = (hash ^ word) * kPrime;
  }
  return hash;
}

bool is_packet_log(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof(kMagic) && std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) == 0;
}

Result<std::vector<LogRecord>> read_packet_log(std::span<const std::byte> bytes) {
  if (!is_packet_log(bytes))
    return fail(StatusCode::kCorrupt, "[amd] this is no log of packets: it does not begin with {}", kMagic);
  std::vector<LogRecord> records;
  for (std::size_t at = sizeof(kMagic); at < bytes.size();) {
    Head head;
    if (bytes.size() - at < sizeof(head))
      return fail(StatusCode::kCorrupt, "[amd] the log is cut short: {} bytes at {}, {} wanted", bytes.size() - at, at,
                  sizeof(head));
    std::memcpy(&head, bytes.data() + at, sizeof(head));
    at += sizeof(head);
    if (head.kind > LogRecord::kResult || head.domain > 1)
      return fail(StatusCode::kCorrupt, "[amd] a record of the log has kind {} and domain {}", head.kind, head.domain);
    if (head.bytes > bytes.size() - at)
      return fail(StatusCode::kCorrupt, "[amd] the log is cut short: a record of {} bytes at {} of {}", head.bytes, at,
                  bytes.size());
    records.push_back(
        {static_cast<LogRecord::Kind>(head.kind), head.domain, head.va, head.value, bytes.subspan(at, head.bytes)});
    at += head.bytes;
  }
  if (records.empty() || records.front().kind != LogRecord::kStart)
    return fail(StatusCode::kCorrupt, "[amd] the log has no start, in {} bytes", bytes.size());
  return records;
}

Result<std::vector<std::string>> packet_log_text(std::span<const LogRecord> records) {
  struct Region {
    std::uint64_t bytes;
    std::string name;
  };
  std::map<std::uint64_t, Region> regions;
  std::map<std::uint64_t, std::string> kernels;
  std::vector<std::string> texts;
  const auto name_of = [&](std::uint64_t va) {
    if (const auto kernel = kernels.find(va); kernel != kernels.end()) return kernel->second;
    auto region = regions.upper_bound(va);
    if (region == regions.begin() || va - (--region)->first >= region->second.bytes) return fmt::format("{:#x}", va);
    return fmt::format("{} + {:#x}", region->second.name, va - region->first);
  };
  for (const LogRecord& record : records) {
    const std::string name(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size());
    if (record.kind == LogRecord::kKernel) kernels[record.va] = name;
    if (record.kind == LogRecord::kRegion) regions[record.va] = {record.value, name};
    if (record.kind == LogRecord::kGone) regions.erase(record.va);
    if (record.kind != LogRecord::kRun) continue;
    ZRT_TRY(auto text, packet_text(packets_of(record), name_of));
    texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::uint32_t> packets_of(const LogRecord& record) {
  std::vector<std::uint32_t> packets(record.bytes.size() / sizeof(std::uint32_t));
  const auto bytes = record.bytes.first(packets.size() * sizeof(std::uint32_t));
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(packets)).begin());
  return packets;
}

Result<std::unique_ptr<PacketRecorder>> PacketRecorder::create(const std::string& path, kernel::Target target,
                                                               std::string_view device) {
  ZRT_TRY(auto file, OutputFile::create(path));
  auto recorder = std::unique_ptr<PacketRecorder>(new PacketRecorder(std::move(file)));
  ZRT_CHECK_OK(recorder->file_.write(std::as_bytes(std::span(kMagic))));
  ZRT_CHECK_OK(recorder->add({LogRecord::kStart, 0, 0, static_cast<std::uint64_t>(target),
                              std::as_bytes(std::span(device.data(), device.size()))}));
  return recorder;
}

Status PacketRecorder::name_kernel(std::uint64_t va, std::string_view name) {
  return add({LogRecord::kKernel, 0, va, 0, std::as_bytes(std::span(name.data(), name.size()))});
}

PacketRecorder::~PacketRecorder() {
  if (const auto status = file_.commit(); !status) log().warn("[amd] the log of packets: {}", status.error().message);
}

Status PacketRecorder::add(const LogRecord& record) {
  const Head head{record.kind, record.domain, record.va, record.value, record.bytes.size()};
  ZRT_CHECK_OK(file_.write(std::as_bytes(std::span(&head, 1))));
  return file_.write(record.bytes);
}

Status PacketRecorder::before(std::span<const LoggedRegion> regions, std::span<const std::uint32_t> body) {
  std::map<std::uint64_t, std::size_t> live;
  for (const LoggedRegion& region : regions) live[region.va] = region.bytes.size();
  for (auto it = known_.begin(); it != known_.end();) {
    const auto found = live.find(it->first);
    const bool is_gone = found == live.end() || found->second != it->second.size();
    if (is_gone) ZRT_CHECK_OK(add({LogRecord::kGone, 0, it->first, 0, {}}));
    it = is_gone ? known_.erase(it) : std::next(it);
  }
  std::vector<std::byte> pages;
  for (const LoggedRegion& region : regions) {
    auto [it, is_new] = known_.try_emplace(region.va);
    std::vector<std::byte>& known = it->second;
    if (is_new) {
      known.resize(region.bytes.size());
      ZRT_CHECK_OK(add({LogRecord::kRegion, static_cast<std::uint32_t>(region.domain), region.va, region.bytes.size(),
                        std::as_bytes(std::span(region.name.data(), region.name.size()))}));
    }
    pages.clear();
    for (std::uint64_t at = 0; at < known.size(); at += kLogPage) {
      const auto page = region.bytes.subspan(at, kLogPage);
      if (std::memcmp(page.data(), known.data() + at, kLogPage) == 0) continue;
      const std::uint64_t number = at / kLogPage;
      const auto number_bytes = std::as_bytes(std::span(&number, 1));
      pages.insert(pages.end(), number_bytes.begin(), number_bytes.end());
      pages.insert(pages.end(), page.begin(), page.end());
      std::ranges::copy(page, known.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (!pages.empty()) ZRT_CHECK_OK(add({LogRecord::kPages, 0, region.va, 0, pages}));
  }
  return add({LogRecord::kRun, 0, 0, 0, std::as_bytes(body)});
}

Status PacketRecorder::after(std::span<const LoggedRegion> regions) {
  for (const LoggedRegion& region : regions) {
    std::ranges::copy(region.bytes, known_[region.va].begin());
    ZRT_CHECK_OK(add({LogRecord::kResult, 0, region.va, hash_of(known_[region.va]), {}}));
  }
  return {};
}

}  // namespace zinc_rt::ring
