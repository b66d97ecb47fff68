// Questions about paths, for systems whose C++ library has no std::filesystem beyond std::filesystem::path.
// Thread rule: any thread; no state.
#pragma once

#include <string>

namespace zinc_rt {

// Return false also if the system does not let this process look.
bool is_there(const std::string& path);  // a file, folder or anything else
bool is_folder(const std::string& path);

// Returns the path that a link leads to: as the link says it, below the link's folder if it is relative. Empty if the
// path is no link.
std::string link_target(const std::string& path);

// Returns the path put behind the current folder; an absolute path stays as it is.
std::string absolute_path(const std::string& path);

}  // namespace zinc_rt
