// Fills the public descriptions of an opened model: ModelCard (what it is) and ModelMemory (what it occupies).
// Thread rule: pure functions.
#pragma once

#include "executor/executor.h"
#include "tokenizer/tokenizer.h"
#include "zinc_rt/model_card.h"

namespace zinc_rt {

ModelCard make_model_card(const Executor& executor, const Tokenizer& tokenizer);
ModelMemory make_model_memory(const MemoryPlan& plan, const ExecutorInfo& info);
// Adds to both that this draft model guesses for the model.
void add_draft_model(const Executor& draft, ModelCard& card, ModelMemory& memory);

}  // namespace zinc_rt
