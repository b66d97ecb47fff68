// The text of a timeline: Trace Event JSON, as chrome://tracing and ui.perfetto.dev read it.
// Thread rule: plain values.
#pragma once

#include "engine/timeline.h"

namespace zinc_rt {

// `records` in any order; n_added says how many there ever were.
Status write_timeline(const std::string& path, std::vector<Timeline::Record> records, const TimelineNames& names,
                      std::uint64_t n_added);

}  // namespace zinc_rt
