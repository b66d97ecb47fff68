// ZRT_MULTIVERSION compiles a plain C++ function twice, for the x86-64 baseline and for x86-64-v3, and picks at run
// time by what the processor and the operating system allow. The source has no intrinsics and both versions give the
// same bits: every fused multiply-add is written as fma, for which the baseline version calls the C library, which is
// slow. Sanitizers do not support functions that are picked before they have started, so builds with them use the
// baseline.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && !defined(ZRT_SANITIZED)
#define ZRT_MULTIVERSION __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define ZRT_MULTIVERSION
#endif
