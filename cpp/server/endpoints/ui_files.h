// Lists the chat page's files, which are embedded in the program. CMake generates their source from cpp/server/ui/dist.
// Thread rule: constants.
#pragma once

#include <span>
#include <string_view>

namespace zinc_rt::server {

struct UiFile {
  std::string_view name;  // such as index.html
  std::string_view content_type;
  std::string_view etag;  // the value of the header ETag, with its quotes
  std::string_view bytes;
};

std::span<const UiFile> ui_files();

}  // namespace zinc_rt::server
