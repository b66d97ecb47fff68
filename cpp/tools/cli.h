// The program zinc-rt; `python -m zinc_rt` calls it too.
#pragma once

namespace zinc_rt::tools {

int cli_main(int argc, const char* const* argv);

}  // namespace zinc_rt::tools
