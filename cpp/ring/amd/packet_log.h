// A packet log records what a ring submits to its device (ZINC_RT_PACKET_LOG): the memory before each submission, its
// packets, and the memory afterwards. `zinc-rt replay` runs the log again. A log is a magic number and a list of
// records, each of which is a head and bytes, in little endian.
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
    kStart,   // value: the target; bytes: the device's name
    kKernel,  // code begins at va; bytes: the kernel's name
    kRegion,  // memory of `value` bytes of zeros at va; bytes: its name
    kGone,    // the region at va was freed
    // For the region at va: each page that has changed, as the page's number (8 bytes) and its content (4096 bytes).
    kPages,
    kRun,     // bytes: packets from the first barrier on, without the fence at their end
    kResult,  // value: the hash of the region at va
  };
  Kind kind = kStart;
  std::uint32_t domain = 0;  // set in a kRegion: the AmdDevice::Domain of its memory
  std::uint64_t va = 0, value = 0;
  std::span<const std::byte> bytes;
};
inline constexpr std::uint64_t kLogPage = 4096;

// Returns whether a file begins as a log of packets does.
bool is_packet_log(std::span<const std::byte> bytes);
// Returns the records of a log. Errors: kCorrupt for a file that is not a log or is cut short.
Result<std::vector<LogRecord>> read_packet_log(std::span<const std::byte> bytes);
std::vector<std::uint32_t> packets_of(const LogRecord& run);
// Returns one text per submission: its packets, with names in place of addresses.
Result<std::vector<std::string>> packet_log_text(std::span<const LogRecord> records);
std::uint64_t hash_of(std::span<const std::byte> bytes);

// A region of device memory that packets may read or write.
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
  // Finishes the file and gives it its final name.
  ~PacketRecorder();
  Status name_kernel(std::uint64_t va, std::string_view name);
  // Log all memory that packets may touch: before() before `body` runs, after() when it has ended.
  Status before(std::span<const LoggedRegion> regions, std::span<const std::uint32_t> body);
  Status after(std::span<const LoggedRegion> regions);

 private:
  explicit PacketRecorder(OutputFile file) : file_(std::move(file)) {}
  Status add(const LogRecord& record);

  OutputFile file_;
  // The key is a region's address. The value is the contents that the region would have in a replay at this point.
  std::map<std::uint64_t, std::vector<std::byte>> known_;
};

}  // namespace zinc_rt::ring
