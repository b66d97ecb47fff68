#include "zinc_rt/status.h"

namespace zinc_rt {

const char* to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument: return "invalid argument";
    case StatusCode::kNotFound: return "not found";
    case StatusCode::kExhausted: return "exhausted";
    case StatusCode::kUnavailable: return "unavailable";
    case StatusCode::kCorrupt: return "corrupt";
    case StatusCode::kInternal: return "internal";
    case StatusCode::kCancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace zinc_rt
