// ZRT_MULTIVERSION compiles a plain C++ function twice, for the x86-64 baseline and for x86-64-v3, and picks at run
// time by what the processor and the kernel allow. The source has no intrinsics and the result bits are the same: every
// fused multiply-add is written as fma, which the baseline copy takes, slowly, from the C library. Sanitizers do not
// support functions picked before their own start, so they get the baseline.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && !defined(ZRT_SANITIZED)
#define ZRT_MULTIVERSION __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define ZRT_MULTIVERSION
#endif
