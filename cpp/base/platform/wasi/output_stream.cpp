#include "base/platform/output_stream.h"

#include <stdio_ext.h>

namespace zinc_rt {

PipeSignalBlock::PipeSignalBlock() = default;
PipeSignalBlock::~PipeSignalBlock() = default;

// WASI has no pipes of its own; what the host has for standard error may be one.
std::size_t pipe_bytes() {
  return 4096;
}

void discard_buffer(std::FILE* stream) {
  __fpurge(stream);
}

}  // namespace zinc_rt
