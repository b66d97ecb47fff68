// Prints a step log (step_log.h) for people.
// Thread rule: a pure function.
#pragma once

#include <functional>
#include <string_view>

#include "executor/step_log.h"

namespace zinc_rt {

// Calls line() with a line for the header and one for each record, without line feeds. Errors: kCorrupt, after the lines
// of the records before it.
Status describe_step_log(const StepLog& log, const std::function<void(std::string_view line)>& line);

}  // namespace zinc_rt
