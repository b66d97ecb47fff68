// Writes a timeline as Trace Event JSON, which chrome://tracing and ui.perfetto.dev read.
// Thread rule: plain values.
#pragma once

#include "engine/timeline.h"

namespace zinc_rt {

// Writes the file. `records` may be in any order. n_added is how many records were made since start().
Status write_timeline(const std::string& path, std::vector<Timeline::Record> records, const TimelineNames& names,
                      std::uint64_t n_added);

}  // namespace zinc_rt
