// A log of what a ring gave its device: memory before a submission, packets, and memory afterwards. It is a magic
// number and a list of records, each a head and bytes; little endian.
// Thread rule: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "kernel/zrt_file.h"
#include "ring/amd/device.h"

namespace zinc_rt::ring {

struct LogRecord {
  enum Kind : std::uint32_t {
    kStart,   // value: the target; bytes: what the device is called
    kKernel,  // code begins at va; bytes: the kernel's name
    kRegion,  // memory of `value` bytes of zeros at va; bytes: its name
    kGone,    // the region at va
    kPages,   // of the region at va: a number of 8 bytes and 4096 bytes, for each page that is not what it was
    kRun,     // bytes: packets, from the first barrier on and without the fence at their end
    kResult,  // value: the hash of the region at va
  };
  Kind kind = kStart;
  std::uint32_t domain = 0;  // of kRegion: AmdDevice::Domain
  std::uint64_t va = 0, value = 0;
  std::span<const std::byte> bytes;
};
inline constexpr std::uint64_t kLogPage = 4096;

// Errors: kCorrupt for a file that is not a log or is cut short.
Result<std::vector<LogRecord>> read_packet_log(std::span<const std::byte> bytes);
std::vector<std::uint32_t> packets_of(const LogRecord& run);
// Per submission: its packets as text, with names for addresses.
Result<std::vector<std::string>> packet_log_text(std::span<const LogRecord> records);
std::uint64_t hash_of(std::span<const std::byte> bytes);

// Memory as the log knows it.
struct LoggedRegion {
  std::uint64_t va = 0;
  std::span<const std::byte> bytes;
  AmdDevice::Domain domain = AmdDevice::Domain::kDevice;
  std::string name;
};

class PacketRecorder {
 public:
  static Result<std::unique_ptr<PacketRecorder>> create(const std::string& path, kernel::Target target,
                                                        std::string_view device);
  ~PacketRecorder();  // the file appears
  Status name_kernel(std::uint64_t va, std::string_view name);
  // Logs all memory that packets may touch, before `body` runs and after it has ended.
  Status before(std::span<const LoggedRegion> regions, std::span<const std::uint32_t> body);
  Status after(std::span<const LoggedRegion> regions);

 private:
  explicit PacketRecorder(OutputFile file) : file_(std::move(file)) {}
  Status add(const LogRecord& record);

  OutputFile file_;
  std::map<std::uint64_t, std::vector<std::byte>> known_;  // what a replay has there, by address
};

}  // namespace zinc_rt::ring
