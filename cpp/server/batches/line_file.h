// A file that grows by whole lines. After a kill, a later run continues behind the last whole line.
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

  // Opens the file or makes it. `each` gets the existing whole lines, without line ends, numbered from 1. A last line
  // torn by a kill is cut off. Errors: those of `each`; kUnavailable if the path is not a plain file or another process
  // has it open here; kInvalidArgument if the last line does not begin as all lines do, because the file is then of
  // another kind.
  Status open(const std::string& path, std::string_view lines_begin, const Each& each,
              FileAccess access = FileAccess::kByUmask);
  // Writes a line. When it returns, the system has the line and it survives a kill of this process. After an error the
  // file is unchanged. REQUIRES: no '\n' in the line.
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
