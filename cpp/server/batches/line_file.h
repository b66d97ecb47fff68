// LineFile is a file to which whole lines are appended. After a kill, the next run continues after the last whole line.
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

  // Opens or creates the file. Calls `each` with each existing whole line, without line end, numbered from 1. Removes
  // an incomplete last line. Errors: those of `each`; kUnavailable if the path is not a plain file or another process
  // has opened it with this class; kInvalidArgument if the last line does not begin with `lines_begin`, because the
  // file is then of another kind.
  Status open(const std::string& path, std::string_view lines_begin, const Each& each,
              FileAccess access = FileAccess::kByUmask);
  // Appends a line. After it returns, the line survives a kill of this process, though not a power failure before
  // sync(). After an error the file is unchanged. REQUIRES: no '\n' in the line.
  Status append(std::string_view line);
  Status sync();  // writes the file to disk
  std::uint64_t n_bytes() const { return n_bytes_; }

 private:
  Status read_lines(std::string_view lines_begin, const Each& each);
  std::unexpected<Error> failed(const char* what) const;

  std::string path_;
  int fd_ = -1;
  std::atomic<std::uint64_t> n_bytes_{0};
};

}  // namespace zinc_rt::server
