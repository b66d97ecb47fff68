// What a model and its memory look like, as JSON for people and programs.
// Thread rule: pure functions.
#pragma once

#include <string>

#include "executor/executor.h"
#include "tokenizer/tokenizer.h"

namespace zinc_rt {

// Family, sizes, formats, bytes a token reads of the weights, KV bytes a token.
std::string make_model_card(const Executor& executor, const Tokenizer& tokenizer);
// Regions with heap and bytes; totals. The sum of the regions that are not mapped is what the tier allocates.
std::string make_plan_json(const MemoryPlan& plan, const ExecutorInfo& info);

}  // namespace zinc_rt
