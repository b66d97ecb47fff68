// How a caller takes back a call that computes for long.
// Thread rule: the function is called on the thread of the call.
#pragma once

#include <functional>

namespace zinc_rt {

// Asked before each step; true: the call ends with kCancelled. Empty: nobody asks.
using StopAsked = std::function<bool()>;

}  // namespace zinc_rt
