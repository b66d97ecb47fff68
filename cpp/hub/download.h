// Downloads a file over HTTP, follows redirects and resumes partial downloads. The file gets its final name only when
// it is complete and has the expected hash.
// Thread rule: any thread. If two downloads of the same file run at once, the second is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "client/http_client.h"
#include "zinc_rt/status.h"

namespace zinc_rt::hub {

// Called during a download. Both numbers are in bytes; total is 0 if it is not known.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Checks a complete file before it is renamed to its final name. An error refuses the file.
using Check = std::function<Status(const std::filesystem::path& file)>;

struct RemoteFile {
  std::string url;
  std::string sha256 = {};  // 64 hexadecimal digits; empty if not known
  std::uint64_t bytes = 0;  // size of the file; 0 if not known
  std::string token = {};   // a bearer token; sent only to the URL's own host, not to hosts of redirects
};

struct Fetched {
  // `bytes` is the size of the file. `resumed_bytes` is how many of its bytes an earlier, broken download had already
  // stored.
  std::uint64_t bytes = 0, resumed_bytes = 0;
  std::string sha256;
};

// Downloads a file to `to` + ".part", then renames the .part file to `to`. If the transfer breaks off, the .part file
// stays for a later call. Errors: kUnavailable for network and disk errors, with the cause and what to do, and for a
// site that sends no length; kNotFound for status 404; kInvalidArgument for 401 and 403; kCorrupt if the hash or the
// size is not the expected one, or the file is not GGUF; the error of `check`. After kCorrupt or an error of `check`
// the .part file is removed.
Result<Fetched> download(const RemoteFile& file, const std::filesystem::path& to, const Progress& on_progress,
                         const Check& check);

// Downloads a small text and returns it. Errors: those of download().
Result<std::string> fetch_text(const std::string& url, const client::Headers& headers);

}  // namespace zinc_rt::hub
