// A file that grows by whole lines, so that a later run can go on behind what an earlier one wrote, also after a kill.
// Thread rule: one thread at a time; n_bytes() from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/output_file.h"
#include "zinc_rt/status.h"

namespace zinc_rt::server {

class LineFile {
 public:
  using Each = std::function<Status(std::string_view line, std::uint64_t number)>;

  LineFile() = default;
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // Opens the file, or makes it. `each` gets the whole lines that are there, without their ends, numbers from 1 on; what
  // follows the last of them was torn by a kill and is cut off. Errors: those of `each`; kUnavailable for a path that is
  // no plain file, or that another process has open here; kInvalidArgument for a last line that does not begin as all
  // lines do and so is not of this kind of file.
  Status open(const std::string& path, std::string_view lines_begin, const Each& each,
              FileAccess access = FileAccess::kByUmask);
  // In the hands of the system when it returns: it survives a kill of this process. After an error the file is as
  // before. REQUIRES: no '\n' in the line.
  Status append(std::string_view line);
  Status sync();  // to the disk
  std::uint64_t n_bytes() const { return n_bytes_; }

 private:
  Status read_lines(std::string_view lines_begin, const Each& each);
  std::unexpected<Error> failed(const char* what) const;

  std::string path_;
  int fd_ = -1;
  std::atomic<std::uint64_t> n_bytes_{0};
};

}  // namespace zinc_rt::server
