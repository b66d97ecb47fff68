// ZRT_MULTIVERSION compiles a plain C++ function twice: for the x86-64 baseline and for x86-64-v3. When the program
// starts, the loader picks the version that the processor and the operating system support. Both compute the same bits,
// because the source has no intrinsics and writes every fused multiply-add as fma. (The baseline version calls the C
// library for fma, which is slow.) Builds with sanitizers use the baseline only, because a sanitizer does not support a
// function that is picked before the sanitizer has started.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && !defined(ZRT_SANITIZED)
#define ZRT_MULTIVERSION __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define ZRT_MULTIVERSION
#endif
