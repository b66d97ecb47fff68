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

const char* to_string(Reason reason) {
  switch (reason) {
    case Reason::kNone: return "";
    case Reason::kContextLength: return "context_length_exceeded";
    case Reason::kGrammarTooComplex: return "grammar_too_complex";
    case Reason::kBadLogits: return "bad_logits";
  }
  return "";
}

}  // namespace zinc_rt
