// Declares the entry point of the program zinc-rt. `python -m zinc_rt` calls it too.
#pragma once

#include <string>

#include "zinc_rt/engine_options.h"
#include "zinc_rt/status.h"

namespace zinc_rt::tools {

int cli_main(int argc, const char* const* argv);

// Returns the path of a model that is given as a path or as a name in the models folder. Errors: kNotFound for an
// unknown name; the message suggests a similar one. Thread rule: any thread.
Result<std::string> model_path(const std::string& path_or_name);
// Finds the draft model that the options or ZINC_RT_DRAFT_MODEL name, as model_path() does, and stores its path in the
// options. Errors: those of Store::path_of().
Status find_draft_model(EngineOptions& options);

}  // namespace zinc_rt::tools
