// StopAsked lets a caller stop a long computation.
// Thread rule: the function is called on the thread that called the engine.
#pragma once

#include <functional>

namespace zinc_rt {

// Called before each step. If it returns true, the computation ends with kCancelled. An empty function is never called.
using StopAsked = std::function<bool()>;

}  // namespace zinc_rt
