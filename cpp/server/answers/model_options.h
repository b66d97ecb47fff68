// Reads the options of a model that a request loads.
// Thread rule: pure functions.
#pragma once

#include "server/api/json_in.h"
#include "zinc_rt/engine_options.h"

namespace zinc_rt::server {

// Reads the fields of `fields` that are options of a model (zinc_rt/engine_options.h) into `options`; the others keep
// their values. Errors: 400 with the field's name.
ApiResult<void> read_model_options(Fields& fields, EngineOptions& options);

}  // namespace zinc_rt::server
