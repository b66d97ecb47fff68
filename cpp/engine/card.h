// Fills the public descriptions of an opened model: ModelCard (what it is) and ModelMemory (what it occupies).
// Thread rule: pure functions.
#pragma once

#include "executor/executor.h"
#include "tokenizer/tokenizer.h"
#include "zinc_rt/model_card.h"

namespace zinc_rt {

ModelCard make_model_card(const Executor& executor, const Tokenizer& tokenizer);
ModelMemory make_model_memory(const MemoryPlan& plan, const ExecutorInfo& info);

}  // namespace zinc_rt
