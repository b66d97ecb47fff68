// Downloads a file over HTTP. It follows redirects and resumes partial downloads. The file appears under its name
// complete and with the wanted hash, or not at all.
// Thread rule: any thread; two downloads of the same file at once: the second is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "client/http_client.h"
#include "zinc_rt/status.h"

namespace zinc_rt::hub {

using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;  // bytes; total 0: not known

// Checks a complete file before it gets its name.
using Check = std::function<Status(const std::filesystem::path& file)>;

struct RemoteFile {
  std::string url;
  std::string sha256 = {};  // 64 hex digits; empty: none is known
  std::uint64_t bytes = 0;  // 0: not known
  std::string token = {};   // sent to the URL's own host alone
};

struct Fetched {
  std::uint64_t bytes = 0, resumed_bytes = 0;  // of the file; that were there already
  std::string sha256;
};

// Downloads into `to` by way of `to` + ".part", which stays if the transfer breaks off. Errors: kUnavailable for
// network and disk errors, with the cause and what to do, and for a site that gives no length; kNotFound for 404;
// kInvalidArgument for 401 and 403; kCorrupt, with the part removed, for another hash or size than wanted and for a
// file that is not GGUF; what `check` returns, also with the part removed.
Result<Fetched> download(const RemoteFile& file, const std::filesystem::path& to, const Progress& on_progress,
                         const Check& check);

// Downloads a small text. Errors: as download().
Result<std::string> fetch_text(const std::string& url, const client::Headers& headers);

}  // namespace zinc_rt::hub
