// Does with file descriptors what systems do in different ways.
// Thread rule: any thread.
#pragma once

#include <string>

namespace zinc_rt {

// Returns the descriptor of this process that the path stands for, such as 1 for /dev/stdout. Returns -1 if it stands
// for none.
int descriptor_of(const std::string& path);
// Returns a new descriptor of the same file, which is closed on exec. Returns -1 and sets errno if the system refuses.
int duplicate_descriptor(int fd);
// Gives the file mode 0600. Returns false and sets errno if that fails, as it does on systems whose files have no
// modes.
bool make_owner_only(int fd);

}  // namespace zinc_rt
