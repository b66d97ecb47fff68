// Tells whether the system can start threads. Where it cannot, whoever waits for work does the work, and the
// constructor of std::thread ends the process, as it does everywhere if no thread can be started and nothing catches
// the exception.
#pragma once

namespace zinc_rt {

#if defined(__wasm__)
inline constexpr bool kHasThreads = false;
#else
inline constexpr bool kHasThreads = true;
#endif

}  // namespace zinc_rt
